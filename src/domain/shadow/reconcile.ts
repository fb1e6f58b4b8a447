/** A reminder as shadow mode handled it. */
export interface Shadowed {
  readonly deliveryId: string;
  readonly reminderId: string;
  readonly contractRef: string;
  readonly renewalDate: string;
  readonly jurisdiction: string;
  readonly timeZone: string;
  /** As it is stored. */
  readonly dueAt: Date;
  /** As it is computed anew, from what was asked for; a text says why it cannot be. */
  readonly recomputedAt: Date | string;
  readonly state: string;
  /** How often it would have been sent with success. */
  readonly effects: number;
  readonly firstAttemptAt: Date | undefined;
}

/** A row of the old system's list. */
export interface Expected {
  readonly contractRef: string;
  readonly dueAt: Date;
  /** Undefined: found by its contract. */
  readonly deliveryId: string | undefined;
  /** Where it stands in the list, from 1. */
  readonly line: number;
}

export const FINDING_KINDS = [
  'missing',
  'extra',
  'different_time',
  'duplicate',
  'not_sent',
  'not_computed',
] as const;

/** Something that is not as it should be. */
export interface Finding {
  readonly kind: (typeof FINDING_KINDS)[number];
  readonly note: string;
  /** Of a different time: how much later ours is, in milliseconds, and than what. */
  readonly byMs?: number;
  readonly against?: 'calendar' | 'expected';
}

/** One delivery, one row of the old list, or both; without findings they match. */
export interface ReconciledRow {
  readonly ours: Shadowed | undefined;
  readonly expected: Expected | undefined;
  readonly findings: readonly Finding[];
}

export interface ReconcileInput {
  /** Somewhat more than the period's, so that what moved over its edge is recognised. */
  readonly ours: readonly Shadowed[];
  /** Undefined: there is no old list, so nothing is missing or extra. */
  readonly expected: readonly Expected[] | undefined;
  readonly from: Date;
  readonly to: Date;
  readonly now: Date;
}

/** What is further apart belongs to another renewal of the contract. */
const FURTHEST_APART_MS = 31 * 86_400_000;
/** How long after it is due something may still be on its way. */
const UNDER_WAY_MS = 5 * 60_000;

/** Reconciles row by row: by delivery id where the old list has one, else by contract and the closest time. */
export function reconcileShadow(input: ReconcileInput): readonly ReconciledRow[] {
  const inPeriod = (at: Date | string | undefined): boolean =>
    at instanceof Date && at >= input.from && at < input.to;
  const alive = input.ours.filter((o) => o.state !== 'cancelled');
  const pairs = pair(alive, input.expected ?? []);
  const known: Known = {
    hasExpected: input.expected !== undefined,
    again: findRepeats(alive),
    twins: findTwins(input.expected ?? []),
    cancelled: new Map(input.ours.filter((o) => o.state === 'cancelled').map((o) => [o.contractRef, o])),
    now: input.now,
  };
  const rows = pairs
    .filter(
      ({ ours, expected }) =>
        inPeriod(ours?.dueAt) || inPeriod(ours?.recomputedAt) || inPeriod(expected?.dueAt),
    )
    .map(({ ours, expected }) => ({
      ours,
      expected,
      findings: [
        ...(ours === undefined ? [] : judgeOurs(ours, known)),
        ...judgePair({ ours, expected }, known),
      ],
    }));
  return rows.sort((a, b) => startOf(a) - startOf(b) || (keyOf(a) < keyOf(b) ? -1 : 1));
}

interface Pair {
  readonly ours: Shadowed | undefined;
  readonly expected: Expected | undefined;
}

function pair(ours: readonly Shadowed[], expected: readonly Expected[]): Pair[] {
  const pairs: Pair[] = [];
  const byId = new Map(ours.map((o) => [o.deliveryId, o]));
  const taken = new Set<Shadowed>();
  const left: Expected[] = [];
  const take = (o: Shadowed, e: Expected): void => {
    taken.add(o);
    pairs.push({ ours: o, expected: e });
  };
  for (const row of expected) {
    const named = row.deliveryId === undefined ? undefined : byId.get(row.deliveryId);
    if (named === undefined || taken.has(named)) left.push(row);
    else take(named, row);
  }
  const candidates = groupByContract(ours.filter((o) => !taken.has(o)));
  for (const [contractRef, rows] of groupByContract(left)) {
    const open = new Set(candidates.get(contractRef) ?? []);
    // The closest first, so that one row that differs takes no other's partner.
    const distances = rows
      .flatMap((e) =>
        [...open].map((o) => ({ o, e, apartMs: Math.abs(o.dueAt.getTime() - e.dueAt.getTime()) })),
      )
      .filter((d) => d.apartMs <= FURTHEST_APART_MS)
      .sort((a, b) => a.apartMs - b.apartMs);
    const waiting = new Set(rows);
    for (const { o, e } of distances) {
      if (!open.has(o) || !waiting.has(e)) continue;
      open.delete(o);
      waiting.delete(e);
      take(o, e);
    }
    for (const e of waiting) pairs.push({ ours: undefined, expected: e });
  }
  for (const o of ours) if (!taken.has(o)) pairs.push({ ours: o, expected: undefined });
  return pairs;
}

function groupByContract<T extends { readonly contractRef: string }>(rows: readonly T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const row of rows) {
    const group = groups.get(row.contractRef);
    if (group === undefined) groups.set(row.contractRef, [row]);
    else group.push(row);
  }
  return groups;
}

/** Of several deliveries for one renewal of a contract, all but the first. */
function findRepeats(ours: readonly Shadowed[]): ReadonlyMap<Shadowed, Shadowed> {
  const first = new Map<string, Shadowed>();
  const repeats = new Map<Shadowed, Shadowed>();
  for (const row of [...ours].sort((a, b) => (a.deliveryId < b.deliveryId ? -1 : 1))) {
    const key = `${row.renewalDate} ${row.contractRef}`;
    const before = first.get(key);
    if (before === undefined) first.set(key, row);
    else repeats.set(row, before);
  }
  return repeats;
}

/** What a row is judged by beside itself. */
interface Known {
  readonly hasExpected: boolean;
  readonly again: ReadonlyMap<Shadowed, Shadowed>;
  readonly twins: ReadonlyMap<Expected, Expected>;
  readonly cancelled: ReadonlyMap<string, Shadowed>;
  readonly now: Date;
}

function judgeOurs(ours: Shadowed, { again, now }: Known): Finding[] {
  const findings: Finding[] = [];
  if (typeof ours.recomputedAt === 'string') {
    findings.push({ kind: 'not_computed', note: `the calendar gives no time: ${ours.recomputedAt}` });
  } else {
    findings.push(...compareTimes(ours.dueAt, ours.recomputedAt, 'calendar'));
  }
  const before = again.get(ours);
  if (before !== undefined) {
    findings.push({
      kind: 'duplicate',
      note: `${before.deliveryId} is for the same contract and renewal date`,
    });
  }
  if (ours.effects > 1) {
    findings.push({ kind: 'duplicate', note: `it would have been sent ${ours.effects} times` });
  }
  if (ours.effects === 0 && ours.dueAt.getTime() + UNDER_WAY_MS < now.getTime()) {
    findings.push({ kind: 'not_sent', note: `it was due and did not go out: ${ours.state}` });
  }
  return findings;
}

function judgePair({ ours, expected }: Pair, known: Known): Finding[] {
  if (expected === undefined) {
    if (!known.hasExpected || ours === undefined || known.again.has(ours)) return [];
    return [{ kind: 'extra', note: 'the old list does not have it' }];
  }
  if (ours !== undefined) return compareTimes(ours.dueAt, expected.dueAt, 'expected');
  const twin = known.twins.get(expected);
  if (twin !== undefined) {
    return [{ kind: 'duplicate', note: `the old list has it in line ${twin.line} as well` }];
  }
  const cancelled = known.cancelled.get(expected.contractRef);
  const note =
    cancelled === undefined ? 'there is no delivery for it' : `${cancelled.deliveryId} was cancelled`;
  return [{ kind: 'missing', note }];
}

/** Of several equal rows of the old list, all but the first. */
function findTwins(expected: readonly Expected[]): ReadonlyMap<Expected, Expected> {
  const first = new Map<string, Expected>();
  const twins = new Map<Expected, Expected>();
  for (const row of expected) {
    const key = `${row.dueAt.getTime()} ${row.contractRef}`;
    const before = first.get(key);
    if (before === undefined) first.set(key, row);
    else twins.set(row, before);
  }
  return twins;
}

function compareTimes(oursAt: Date, otherAt: Date, against: 'calendar' | 'expected'): Finding[] {
  const byMs = oursAt.getTime() - otherAt.getTime();
  if (byMs === 0) return [];
  const direction = byMs > 0 ? 'later' : 'earlier';
  const than = against === 'calendar' ? 'than the calendar says' : 'than in the old list';
  return [{ kind: 'different_time', byMs, against, note: `${formatSpanOf(byMs)} ${direction} ${than}` }];
}

/** "1 d 2 h", for people. */
function formatSpanOf(ms: number): string {
  const seconds = Math.round(Math.abs(ms) / 1000);
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ] as const;
  const spoken = parts.filter(([amount]) => amount > 0).map(([amount, unit]) => `${amount} ${unit}`);
  return spoken.length === 0 ? 'less than a second' : spoken.join(' ');
}

function startOf({ ours, expected }: ReconciledRow): number {
  return (ours?.dueAt ?? expected?.dueAt ?? new Date(0)).getTime();
}

function keyOf({ ours, expected }: ReconciledRow): string {
  return ours?.deliveryId ?? `${expected?.contractRef} ${expected?.line}`;
}
