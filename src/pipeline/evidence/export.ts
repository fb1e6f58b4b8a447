import {
  type Bundle,
  type BundledDelivery,
  type BundledOperation,
  type BundledSeal,
  closeBundle,
  type Receipt,
} from '../../domain/audit/bundle.ts';
import type { DeliveryFacts } from '../../domain/audit/facts.ts';
import { consistencyPath, inclusionPath } from '../../domain/audit/merkle.ts';
import type { Signer } from '../../domain/audit/seal.ts';
import { Refusal } from '../../domain/refusal.ts';
import { version } from '../../runtime/build-info.ts';
import { listDeliveriesAsked, type Question } from '../../store/evidence/questions.ts';
import { findLeaves, type StoredLeaf } from '../../store/evidence/seal-leaves.ts';
import {
  findLastSeal,
  findSeals,
  listSealHashes,
  type StoredSeal,
  splitHashes,
  statementOf,
} from '../../store/evidence/seals.ts';
import { findBodies, findFacts, findInstant, listOperationsOf } from '../../store/evidence/trail.ts';
import { inSnapshot, type Pool, type Queryable } from '../../store/pool.ts';

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
export function exportEvidence(question: Question, options: ExportOptions): Promise<Bundle> {
  // Of one instant: the proofs fit the rows.
  return inSnapshot(options.pool, async (db) => {
    const ids = await listDeliveriesAsked(db, { ...question, limit: MAX_DELIVERIES + 1 });
    if (ids.length === 0) throw new Refusal('not_found', `there is no delivery ${describe(question)}`);
    if (ids.length > MAX_DELIVERIES) {
      throw new Refusal(
        'ambiguous_reference',
        `more than ${MAX_DELIVERIES} deliveries are ${describe(question)}: ask about a date or a delivery`,
      );
    }
    return collect(db, { question, ids, options });
  });
}

function describe({ contractRef, date, deliveryId }: Question): string {
  const parts = [
    ...(deliveryId === undefined ? [] : [deliveryId]),
    ...(contractRef === undefined ? [] : [`of contract ${contractRef}`]),
    ...(date === undefined ? [] : [`on ${date}`]),
  ];
  return parts.join(' ');
}

async function collect(
  db: Queryable,
  of: { question: Question; ids: readonly string[]; options: ExportOptions },
): Promise<Bundle> {
  const { question, ids, options } = of;
  const facts = [...(await findFacts(db, ids)).values()];
  const known = facts.map(requireWhole);
  const bodies = await findBodies(db, [...new Set(known.map((f) => f.delivery.source_id))]);
  const endpoints = known.map((f) => f.delivery.endpoint_id);
  const contracts = known.flatMap((f) => f.delivery.contract_ref ?? []);
  const ends = known.map((f) => f.delivery.ended_at).toSorted(byText);
  const operations = await listOperationsOf(db, {
    subjectIds: [...new Set([...endpoints, ...contracts])],
    from: known.map((f) => f.delivery.created_at).toSorted(byText)[0] as string,
    to: ends.includes(null) ? undefined : (ends.at(-1) ?? undefined),
  });
  const leaves = await findLeaves(db, [...ids, ...operations.map((o) => o.operation_id)]);
  const proofs = await openProofs(db, leaves);
  const keys = new Set(known.map((f) => f.delivery.idempotency_key));
  const content = {
    format: 'duepost.evidence' as const,
    v: 1 as const,
    product: `duepost ${version}`,
    exported_at: await findInstant(db),
    exported_by: options.actor,
    question: {
      contract_ref: question.contractRef ?? null,
      date: question.date ?? null,
      delivery_id: question.deliveryId ?? null,
    },
    deliveries: known.map((f) =>
      bundleDelivery(f, { leaves, proofs, bytes: bodies.get(f.delivery.source_id) }),
    ),
    operations: operations.map((operation): BundledOperation => {
      const leaf = leaves.find((l) => l.kind === 'operation' && l.subjectId === operation.operation_id);
      return { operation, seal: leaf === undefined ? null : proofs.placeOf(leaf) };
    }),
    seals: proofs.seals,
    receipts: (options.receipts ?? []).filter((r) => keys.has(r.idempotency_key)),
  };
  return closeBundle(content, options.signer);
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

interface Proofs {
  readonly seals: BundledSeal[];
  placeOf(leaf: StoredLeaf): { seal: number; index: number; path: string[] };
}

/** The seals that the leaves stand in and the last of all, each with the proof that it belongs to that one's history. */
async function openProofs(db: Queryable, leaves: readonly StoredLeaf[]): Promise<Proofs> {
  const last = await findLastSeal(db);
  const numbers = [...new Set(leaves.map((l) => l.sealNumber))].sort((a, b) => a - b);
  const found = await findSeals(db, numbers);
  const wanted = numbers.flatMap((n) => found.get(n) ?? []);
  const history = last === undefined ? [] : await listSealHashes(db, last.number - 1);
  const hashes = new Map(wanted.map((seal) => [seal.number, splitHashes(seal.leaves)]));
  const older = wanted.filter((seal) => seal.number !== last?.number);
  return {
    seals: [
      ...older.map((seal) => bundleSeal(seal, history)),
      ...(last === undefined ? [] : [bundleSeal(last, undefined)]),
    ],
    placeOf: (leaf) => ({
      seal: leaf.sealNumber,
      index: leaf.index,
      path: inclusionPath(hashes.get(leaf.sealNumber) ?? [], leaf.index).map(hex),
    }),
  };
}

function bundleSeal(seal: StoredSeal, history: readonly Buffer[] | undefined): BundledSeal {
  return {
    statement: { ...statementOf(seal), parts: [...statementOf(seal).parts] },
    signature: hex(seal.signature),
    history:
      history === undefined
        ? null
        : {
            inclusion: inclusionPath(history, seal.number - 1).map(hex),
            consistency: consistencyPath(history, seal.number - 1).map(hex),
          },
  };
}

/** Instants as text sort by time. */
function byText(a: string | null, b: string | null): number {
  return (a ?? '') < (b ?? '') ? -1 : 1;
}

function hex(bytes: Buffer): string {
  return bytes.toString('hex');
}
