import {
  type Bundle,
  type BundleContent,
  type BundledDelivery,
  type BundledOperation,
  closeBundle,
  type Receipt,
} from '../../domain/audit/bundle.ts';
import type { DeliveryFacts, OperationRow } from '../../domain/audit/facts.ts';
import type { Signer } from '../../domain/audit/seal.ts';
import { Refusal } from '../../domain/refusal.ts';
import { version } from '../../runtime/build-info.ts';
import { listLastSettingsBefore, readOperationsOf } from '../../store/evidence/operations.ts';
import { listDeliveriesAsked, type Question } from '../../store/evidence/questions.ts';
import { findLeaves, type StoredLeaf } from '../../store/evidence/seal-leaves.ts';
import { findLastSeal, type StoredSeal } from '../../store/evidence/seals.ts';
import { findBodies, findFacts, findInstant } from '../../store/evidence/trail.ts';
import { inSnapshot, type Pool, type Queryable } from '../../store/pool.ts';
import { openProofs, type Proofs } from './proofs.ts';

export interface ExportOptions {
  readonly pool: Pool;
  readonly actor: string;
  /** Undefined: the bundle is not signed; what is sealed in it is provable all the same. */
  readonly signer?: Signer | undefined;
  /** What the receiver says of keys; those of other deliveries are left out. */
  readonly receipts?: readonly Receipt[];
}

/** Deliveries in one bundle. */
const MAX_DELIVERIES = 1_000;

/**
 * Everything that is known of the deliveries that a question is about, with the proofs that it is sealed, as one bundle.
 *
 * @throws Refusal when no delivery fits the question, or more than a thousand do
 */
export async function exportEvidence(question: Question, options: ExportOptions): Promise<Bundle> {
  // Of one instant: what is sealed fits the rows.
  const known = await inSnapshot(options.pool, async (db) => {
    const ids = await listDeliveriesAsked(db, { ...question, limit: MAX_DELIVERIES + 1 });
    if (ids.length === 0) throw new Refusal('not_found', `there is no delivery ${describe(question)}`);
    if (ids.length > MAX_DELIVERIES) {
      throw new Refusal(
        'ambiguous_reference',
        `more than ${MAX_DELIVERIES} deliveries are ${describe(question)}: ask about a date or a delivery`,
      );
    }
    return readKnown(db, ids);
  });
  // Afterwards: a transaction must not wait for hashes.
  const proofs = await openProofs(options.pool, known);
  return closeBundle(contentOf(known, { question, proofs, options }), options.signer);
}

function describe({ contractRef, date, deliveryId }: Question): string {
  const parts = [
    ...(deliveryId === undefined ? [] : [deliveryId]),
    ...(contractRef === undefined ? [] : [`of contract ${contractRef}`]),
    ...(date === undefined ? [] : [`on ${date}`]),
  ];
  return parts.join(' ');
}

/** What the database knows of deliveries, at one instant. */
interface Known {
  readonly facts: readonly WholeFacts[];
  /** By the id of the reminder or event. */
  readonly bodies: ReadonlyMap<string, Buffer>;
  /** On their endpoints and contracts in the meantime, and how the endpoints came to be as they were at its beginning. */
  readonly operations: readonly OperationRow[];
  readonly leaves: readonly StoredLeaf[];
  readonly last: StoredSeal | undefined;
  readonly at: string;
}

async function readKnown(db: Queryable, ids: readonly string[]): Promise<Known> {
  const facts = [...(await findFacts(db, ids)).values()].map(requireWhole);
  const endpoints = facts.map((f) => f.delivery.endpoint_id);
  const contracts = facts.flatMap((f) => f.delivery.contract_ref ?? []);
  const ends = facts.map((f) => f.delivery.ended_at).toSorted(byText);
  const from = facts.map((f) => f.delivery.created_at).toSorted(byText)[0] as string;
  const before = await listLastSettingsBefore(db, { endpointIds: endpoints, before: from });
  const meanwhile = readOperationsOf(db, {
    subjectIds: [...new Set([...endpoints, ...contracts])],
    from,
    to: ends.includes(null) ? undefined : (ends.at(-1) ?? undefined),
  });
  const operations = [...before];
  for await (const operation of meanwhile) operations.push(operation);
  return {
    facts,
    operations,
    bodies: await findBodies(db, [...new Set(facts.map((f) => f.delivery.source_id))]),
    leaves: await findLeaves(db, [...ids, ...operations.map((o) => o.operation_id)]),
    last: await findLastSeal(db),
    at: await findInstant(db),
  };
}

function contentOf(
  known: Known,
  of: { question: Question; proofs: Proofs; options: ExportOptions },
): BundleContent {
  const { question, proofs, options } = of;
  const { facts, leaves } = known;
  const keys = new Set(facts.map((f) => f.delivery.idempotency_key));
  return {
    format: 'duepost.evidence',
    v: 1,
    product: `duepost ${version}`,
    exported_at: known.at,
    exported_by: options.actor,
    question: {
      contract_ref: question.contractRef ?? null,
      date: question.date ?? null,
      delivery_id: question.deliveryId ?? null,
    },
    deliveries: facts.map((f) =>
      bundleDelivery(f, { leaves, proofs, bytes: known.bodies.get(f.delivery.source_id) }),
    ),
    operations: known.operations.map((operation): BundledOperation => {
      const leaf = leaves.find((l) => l.kind === 'operation' && l.subjectId === operation.operation_id);
      return { operation, seal: leaf === undefined ? null : proofs.placeOf(leaf) };
    }),
    seals: proofs.seals,
    receipts: (options.receipts ?? []).filter((r) => keys.has(r.idempotency_key)),
  };
}

type WholeFacts = DeliveryFacts & {
  readonly delivery: NonNullable<DeliveryFacts['delivery']>;
  readonly source: NonNullable<DeliveryFacts['source']>;
  readonly body: NonNullable<DeliveryFacts['body']>;
};

function requireWhole(facts: DeliveryFacts): WholeFacts {
  const { delivery, source, body } = facts;
  if (delivery === null || source === null || body === null) {
    throw new Error(`rows of ${delivery?.delivery_id ?? 'a delivery'} are missing: run duepost audit verify`);
  }
  return { ...facts, delivery, source, body };
}

function bundleDelivery(
  facts: WholeFacts,
  of: { leaves: readonly StoredLeaf[]; proofs: Proofs; bytes: Buffer | undefined },
): BundledDelivery {
  const { delivery, source, body, trail, attempts, records } = facts;
  return {
    delivery,
    source,
    body: {
      sha256: body.sha256,
      data_offset: body.data_offset,
      bytes: of.bytes?.toString('base64') ?? null,
      erased_at: body.erased_at,
    },
    trail: [...trail],
    attempts: [...attempts],
    records: [...records],
    seals: of.leaves
      .filter((leaf) => leaf.kind !== 'operation' && leaf.subjectId === delivery.delivery_id)
      .map((leaf) => ({
        ...of.proofs.placeOf(leaf),
        trail_length: leaf.entry ?? 0,
        content_sha256: leaf.contentSha256 ?? '',
        cycle: leaf.cycle ?? null,
      })),
  };
}

/** Instants as text sort by time. */
function byText(a: string | null, b: string | null): number {
  return (a ?? '') < (b ?? '') ? -1 : 1;
}
