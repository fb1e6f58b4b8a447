/** What is known of a reminder that was due within a period. */
export interface DueReminder {
  readonly reminderId: string;
  readonly deliveryId: string;
  readonly contractRef: string;
  readonly renewalDate: string;
  /** Undefined: its delivery is not there. */
  readonly state: string | undefined;
  readonly cycle: number;
  readonly hasEnded: boolean;
  readonly records: readonly {
    readonly cycle: number;
    readonly state: string;
    readonly inTime: boolean;
    readonly shadow: boolean;
  }[];
  /** Numbers of the attempts that were answered 2xx, and of those whose outcome is not known. */
  readonly delivered: readonly number[];
  readonly unknown: readonly number[];
}

/** A contract that must have been reminded of; the date undefined: of whichever renewal. */
export interface ExpectedReminder {
  readonly contractRef: string;
  readonly renewalDate: string | undefined;
}

/** Something that keeps the period from being complete. */
export interface Gap {
  readonly kind: 'missing' | 'extra' | 'late' | 'unknown';
  /** Undefined: there is none. */
  readonly deliveryId: string | undefined;
  readonly contractRef: string;
  readonly what: string;
}

/** What speaks against a reminder having exactly one final outcome, in time. */
export function findGaps(reminder: DueReminder): Gap[] {
  const { deliveryId, contractRef, records, delivered, unknown } = reminder;
  const gap = (kind: Gap['kind'], what: string): Gap => ({ kind, deliveryId, contractRef, what });
  if (reminder.state === undefined) return [gap('missing', 'its delivery is not there')];
  if (!reminder.hasEnded) return [gap('missing', `it has no outcome yet: it is ${reminder.state}`)];
  const gaps: Gap[] = [];
  if (records.length < reminder.cycle)
    gaps.push(gap('missing', `it has ended ${reminder.cycle} times and has ${records.length} audit records`));
  if (records.length > reminder.cycle)
    gaps.push(gap('extra', `it has ended ${reminder.cycle} times and has ${records.length} audit records`));
  if (records.filter((r) => r.state === 'delivered').length > 1)
    gaps.push(gap('extra', 'it was delivered in more than one cycle'));
  if (delivered.length > 1) {
    const what = `attempts ${delivered.join(', ')} were answered 2xx: that it took effect once rests on the receiver's record of the key`;
    gaps.push(gap('extra', what));
  }
  const last = records.at(-1);
  if (last === undefined) return gaps;
  if (last.shadow) gaps.push(gap('missing', 'it ended in shadow mode: nothing was sent'));
  if (last.state === 'delivered' && !last.inTime)
    gaps.push(gap('late', 'it was delivered after its deadline'));
  if (last.state !== 'delivered' && unknown.length > 0) {
    const what = `it ended ${last.state}, and what attempt ${unknown.join(', ')} did is not known`;
    gaps.push(gap('unknown', what));
  }
  return gaps;
}

/**
 * Compares, one by one, who must have been reminded with who was. Equal counts say nothing: one that is missing and one
 * too many are two gaps.
 */
export function compareExpected(
  expected: readonly ExpectedReminder[],
  due: readonly Pick<DueReminder, 'deliveryId' | 'contractRef' | 'renewalDate'>[],
): Gap[] {
  const gaps: Gap[] = [];
  const matched = new Set<string>();
  const byContract = new Map<string, (typeof due)[number][]>();
  for (const reminder of due) {
    const group = byContract.get(reminder.contractRef) ?? [];
    byContract.set(reminder.contractRef, group);
    group.push(reminder);
  }
  const name = ({ renewalDate }: ExpectedReminder): string =>
    renewalDate === undefined ? '' : ` of the renewal on ${renewalDate}`;
  const seen = new Set<string>();
  for (const one of expected) {
    const { contractRef, renewalDate } = one;
    const key = `${contractRef}\n${renewalDate ?? ''}`;
    if (seen.has(key)) continue;
    seen.add(key);
    const found = (byContract.get(contractRef) ?? []).filter(
      (r) => renewalDate === undefined || r.renewalDate === renewalDate,
    );
    if (found.length === 0) {
      gaps.push({
        kind: 'missing',
        deliveryId: undefined,
        contractRef,
        what: `no reminder${name(one)} was due in the period`,
      });
    }
    for (const [i, { deliveryId }] of found.entries()) {
      matched.add(deliveryId);
      if (i > 0)
        gaps.push({
          kind: 'extra',
          deliveryId,
          contractRef,
          what: `there are ${found.length} reminders${name(one)}`,
        });
    }
  }
  for (const { deliveryId, contractRef, renewalDate } of due) {
    if (matched.has(deliveryId)) continue;
    gaps.push({
      kind: 'extra',
      deliveryId,
      contractRef,
      what: `its renewal on ${renewalDate} is not expected`,
    });
  }
  return gaps;
}
