import { checkDelivery } from '../../domain/audit/check-delivery.ts';
import { type DeliveryFacts, deliveryLeafText, hashContent } from '../../domain/audit/facts.ts';
import type { Findings } from '../../domain/audit/finding.ts';
import { hashLeaf } from '../../domain/audit/merkle.ts';
import { type FoundLeaf, findLeaves } from '../../store/evidence/seal-leaves.ts';
import { findSealTimes, type SealTime } from '../../store/evidence/seals.ts';
import { findFacts } from '../../store/evidence/trail.ts';
import { findUnsealed, type Unsealed } from '../../store/evidence/unsealed.ts';
import type { Queryable } from '../../store/pool.ts';
import type { Dropped } from './dropped.ts';
import { checkSealingTime, type Late } from './verify-sealing-time.ts';

/** Checks deliveries, each against its own rows and against what was sealed of it; within one snapshot. */
export async function verifyDeliveries(
  db: Queryable,
  ids: readonly string[],
  of: { readonly dropped: Dropped; readonly findings: Findings; readonly late: Late },
): Promise<void> {
  const { dropped, findings, late } = of;
  const facts = await findFacts(db, ids);
  const found = await findLeaves(db, ids);
  const times = await findSealTimes(db, [...new Set(found.map((l) => l.sealNumber))]);
  const leaves = groupBySubject(found);
  const waiting = groupBySubject(await findUnsealed(db, ids));
  for (const [id, known] of facts) {
    const own = leaves.get(id) ?? [];
    if (known.delivery === null && isDropped(known, { id, own, dropped })) continue;
    for (const finding of checkDelivery(id, known)) findings.add(finding.where, finding.what);
    checkLeaves(known, { id, leaves: own, waiting: waiting.get(id) ?? [], findings });
    checkTimes(known, { id, leaves: own, times, findings, late });
  }
}

function checkTimes(
  { trail }: DeliveryFacts,
  of: {
    id: string;
    leaves: readonly FoundLeaf[];
    times: ReadonlyMap<number, SealTime>;
    findings: Findings;
    late: Late;
  },
): void {
  const { id, leaves, times, findings, late } = of;
  for (const leaf of leaves) {
    const entry = trail.find((e) => e.entry === leaf.entry);
    if (entry === undefined) continue;
    const where = `trail entry ${entry.entry} of ${id}`;
    checkSealingTime(where, { saidAt: entry.at, time: times.get(leaf.sealNumber), findings, late });
  }
}

/** Retention removes the deliveries of a month first, and their evidence last. */
function isDropped(
  { records }: DeliveryFacts,
  of: { id: string; own: readonly FoundLeaf[]; dropped: Dropped },
): boolean {
  const kind = records[0]?.kind ?? of.own[0]?.kind;
  return kind !== undefined && of.dropped.covers(kind, of.id);
}

/** What needs a seal of its own, besides every audit record. */
function needsLeaf(kind: string, event: string): boolean {
  return (
    event === 'late_result' ||
    event === 'erase' ||
    (kind === 'reminder' && ['schedule', 'reschedule', 'recalculate'].includes(event))
  );
}

function checkLeaves(
  facts: DeliveryFacts,
  of: { id: string; leaves: readonly FoundLeaf[]; waiting: readonly Unsealed[]; findings: Findings },
): void {
  const { id, leaves, waiting, findings } = of;
  const { delivery, trail, records } = facts;
  const count = (cycle: number | undefined, entry: number | undefined): number =>
    [...leaves, ...waiting].filter((l) => l.cycle === cycle && l.entry === entry).length;
  const expectOne = (sealed: number, where: string): void => {
    findings.expect(
      sealed > 0,
      where,
      'it is not sealed and does not wait to be: it was added, or its leaf was removed',
    );
    findings.expect(sealed <= 1, where, `it is sealed ${sealed} times`);
  };
  for (const record of records) {
    expectOne(count(record.cycle, record.trail_length), `audit record ${record.cycle} of ${id}`);
  }
  for (const entry of trail) {
    if (delivery !== null && needsLeaf(delivery.kind, entry.event))
      expectOne(count(undefined, entry.entry), `trail entry ${entry.entry} of ${id}`);
  }
  for (const leaf of leaves) checkLeaf(facts, { id, leaf, findings });

  const last = leaves.findLast((l) => l.entry === delivery?.trail_length);
  // What waits will be sealed as it is then: only what is sealed to its last entry can be held against it.
  if (last === undefined || waiting.length > 0) return;
  findings.expect(
    hashContent(facts) === last.contentSha256,
    `delivery ${id}`,
    `its attempts, its timing, or the ${delivery?.kind ?? 'row'} it is of are not what was sealed in seal ${last.sealNumber}: one was changed`,
  );
}

function checkLeaf(
  { trail, records, delivery }: DeliveryFacts,
  of: { id: string; leaf: FoundLeaf; findings: Findings },
): void {
  const { id, leaf, findings } = of;
  const where = `delivery ${id}`;
  const entry = trail.find((e) => e.entry === leaf.entry);
  const record = records.find((r) => r.cycle === leaf.cycle) ?? null;
  if (entry === undefined || (leaf.cycle !== undefined && record === null)) {
    const what =
      entry === undefined ? `trail entry ${String(leaf.entry)}` : `audit record ${String(leaf.cycle)}`;
    findings.add(where, `${what} was sealed in seal ${leaf.sealNumber}, and is missing`);
    return;
  }
  const text = deliveryLeafText({
    kind: delivery?.kind ?? (leaf.kind as 'reminder' | 'event'),
    delivery_id: id,
    trail_length: entry.entry,
    trail_sha256: entry.sha256,
    content_sha256: leaf.contentSha256 ?? '',
    record,
  });
  findings.expect(
    hashLeaf(text).toString('hex') === leaf.sha256,
    where,
    `its trail up to entry ${entry.entry}${record === null ? '' : `, or audit record ${record.cycle},`} is not what was sealed in seal ${leaf.sealNumber}: it was changed`,
  );
}

function groupBySubject<T extends { readonly subjectId: string }>(rows: readonly T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const row of rows) {
    const group = groups.get(row.subjectId) ?? [];
    groups.set(row.subjectId, group);
    group.push(row);
  }
  return groups;
}
