import { collectFindings, type Finding, splitFindings } from '../../domain/audit/finding.ts';
import type { PublishedSeal } from '../../domain/audit/published.ts';
import type { SignatureCheck } from '../../domain/audit/seal.ts';
import { listKnownDeliveriesAfter, listOrphansAfter, type Orphan } from '../../store/evidence/trail.ts';
import { countUnsealed } from '../../store/evidence/unsealed.ts';
import { inSnapshot, type Pool } from '../../store/pool.ts';
import { type Dropped, type DroppedMonth, readDropped } from './dropped.ts';
import { verifyDeliveries } from './verify-deliveries.ts';
import { verifyOperations } from './verify-operations.ts';
import { collectLate } from './verify-sealing-time.ts';
import { type SealHead, verifySeals } from './verify-seals.ts';

export interface VerifyOptions {
  readonly pool: Pool;
  readonly checkSignature: SignatureCheck;
  /** Seals as they were published outside of the database, to compare with. */
  readonly published?: readonly PublishedSeal[];
  readonly onProgress?: (stage: 'seals' | 'deliveries' | 'sources', done: number) => void;
}

/** What the check of the whole store found. */
export interface StoreReport {
  readonly ok: boolean;
  /** The first thousand, and what speaks against the store before what could not be checked. */
  readonly findings: readonly Finding[];
  readonly found: number;
  readonly seals: number;
  readonly deliveries: number;
  /** What was sealed so late that nothing vouches for the time it is said to be of, and the first hundred of it. */
  readonly late: { readonly found: number; readonly first: readonly Finding[] };
  /** The seals from outside of this database that it was compared with; undefined: none were given. */
  readonly published: { readonly seals: number; readonly last: number } | undefined;
  /** Subjects that wait to be sealed, and are not protected by a seal yet; counts no further than a million. */
  readonly unsealed: number;
  readonly head: SealHead | undefined;
  readonly dropped: readonly DroppedMonth[];
}

const PAGE = 500;
const SOURCE_PAGE = 2_000;
const MAX_FINDINGS = 1_000;
const MAX_UNSEALED = 1_000_000;

/**
 * Checks all evidence in the database: every chain, every row against the trail, every leaf against its seal, every seal
 * against the one before; names whatever was changed, removed, added or reordered. Bounded statements; nothing is locked.
 */
export async function verifyStore(options: VerifyOptions): Promise<StoreReport> {
  const { pool, onProgress } = options;
  const findings = collectFindings();
  const late = collectLate();
  const dropped = await readDropped(pool, findings);
  const { head, seals } = await verifySeals(options, { dropped, findings });
  await inSnapshot(pool, (db) => verifyOperations(db, { findings, late }));
  for (let from = 0; from < dropped.kept.length; from += PAGE) {
    const ids = dropped.kept.slice(from, from + PAGE);
    await inSnapshot(pool, (db) => verifyDeliveries(db, ids, { dropped, findings, late }));
  }

  let deliveries = 0;
  for (let after = ''; ; ) {
    const ids = await listKnownDeliveriesAfter(pool, { after, limit: PAGE });
    const last = ids.at(-1);
    if (last === undefined) break;
    // One instant for all rows of a page: a delivery that moves meanwhile is not taken for one that was tampered with.
    await inSnapshot(pool, (db) => verifyDeliveries(db, ids, { dropped, findings, late }));
    deliveries += ids.length;
    after = last;
    onProgress?.('deliveries', deliveries);
  }
  for (const what of ['reminder', 'event', 'body'] as const) {
    await verifySources(options, { what, dropped, add: findings.add });
  }
  const { against, unchecked } = splitFindings(findings.list);
  return {
    ok: findings.list.length === 0,
    findings: [...against, ...unchecked].slice(0, MAX_FINDINGS),
    found: findings.list.length,
    seals,
    deliveries,
    late: { found: late.found, first: late.first },
    published: options.published && {
      seals: options.published.length,
      last: Math.max(0, ...options.published.map((p) => p.number)),
    },
    unsealed: await countUnsealed(pool, MAX_UNSEALED),
    head,
    dropped: dropped.months,
  };
}

async function verifySources(
  { pool, onProgress }: VerifyOptions,
  of: { what: Orphan['what']; dropped: Dropped; add: (where: string, what: string) => void },
): Promise<void> {
  let done = 0;
  for (let after = ''; ; ) {
    const page = await listOrphansAfter(pool, { what: of.what, after, limit: SOURCE_PAGE });
    if (page.last === undefined) return;
    for (const { id, deliveryId } of page.orphans) {
      if (of.dropped.covers(of.what === 'reminder' ? 'reminder' : 'event', deliveryId ?? '')) continue;
      of.add(
        `${of.what} ${id}`,
        deliveryId === undefined ? 'it belongs to nothing' : `its delivery ${deliveryId} is missing`,
      );
    }
    after = page.last;
    done += SOURCE_PAGE;
    onProgress?.('sources', done);
  }
}
