import type { Bundle, BundledDelivery } from './bundle.ts';
import { instant, msBetween, spell } from './instants.ts';
import { lateBy } from './sealing-time.ts';

/** What vouches for a delivery, and since when. */
export function sealing(bundle: Bundle, bundled: BundledDelivery, sealedTo: number): string[] {
  return [
    ...covered(bundle, bundled, sealedTo),
    ...lateParts(bundle, bundled, sealedTo),
    ...beforeDeadline(bundle, bundled),
  ];
}

function covered(bundle: Bundle, { delivery, trail, seals }: BundledDelivery, sealedTo: number): string[] {
  if (sealedTo === 0) {
    return [
      bundle.signature === null
        ? 'NOT SEALED: nothing but this file vouches for it yet.'
        : `Not sealed yet: the signature of this file vouches for it, as of ${instant(bundle.exported_at)}.`,
    ];
  }
  const last = seals.findLast((s) => s.trail_length === sealedTo);
  const at = sealedAt(bundle, last?.seal);
  const rest = trail.length - sealedTo;
  const tail = rest === 0 ? '' : ` The last ${rest} of ${trail.length} entries are not sealed yet.`;
  return [
    `Sealed in seal ${last?.seal ?? '?'} at ${instant(at)}: nothing up to trail entry ${sealedTo} of ${delivery.delivery_id} was changed, removed, added or reordered since.${tail}`,
  ];
}

/** What was sealed much later than it is said to have happened: a seal vouches for nothing before itself. */
function lateParts(bundle: Bundle, { trail, seals }: BundledDelivery, sealedTo: number): string[] {
  const told = new Set<number>();
  return seals.flatMap(({ seal, trail_length }) => {
    const saidAt = trail.find((e) => e.entry === trail_length)?.at ?? '';
    const at = sealedAt(bundle, seal);
    const late = lateBy(saidAt, at);
    if (late === undefined || told.has(trail_length)) return [];
    told.add(trail_length);
    const what = trail_length === sealedTo ? 'it ended' : `trail entry ${trail_length}`;
    return [
      `Sealed ${spell(late)} after ${what} (${instant(saidAt)}): on record only since ${instant(at)}, and nothing but this installation vouches for what it says of the time before.`,
    ];
  });
}

/** Whether it can be shown that the delivery was on record before its deadline, and not only that it says so. */
function beforeDeadline(bundle: Bundle, { delivery, records, seals }: BundledDelivery): string[] {
  const record = records.findLast((r) => r.state === 'delivered' && !r.shadow);
  if (record === undefined || record.deadline_at === null || !record.in_time) return [];
  const seal = seals.find((s) => s.cycle === record.cycle)?.seal;
  // What is not sealed is on record since the file was made, if that is signed.
  const at = seal === undefined ? bundle.exported_at : sealedAt(bundle, seal);
  if (seal === undefined && bundle.signature === null) return [];
  const how = seal === undefined ? 'this file was signed' : `seal ${seal} was made`;
  const left = msBetween(at, record.deadline_at);
  if (left > 0) return [`On record before the deadline: ${how} at ${instant(at)}, ${spell(left)} before it.`];
  return [
    `On record only after the deadline: ${how} at ${instant(at)}, ${spell(-left)} after it. That ${delivery.delivery_id} was delivered before rests on the clock and the word of this installation.`,
  ];
}

function sealedAt({ seals }: Bundle, number: number | undefined): string {
  return seals.find((s) => s.statement.number === number)?.statement.sealed_at ?? '';
}
