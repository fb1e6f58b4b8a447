import { expect, test } from 'vitest';
import { type Expected, reconcileShadow, type Shadowed } from '../../../src/domain/shadow/reconcile.ts';

const FROM = new Date('2026-12-21T00:00:00Z');
const TO = new Date('2026-12-28T00:00:00Z');
const NOW = new Date('2027-01-01T00:00:00Z');

function ours(contractRef: string, due: string, changes: Partial<Shadowed> = {}): Shadowed {
  return {
    deliveryId: `dlv_${contractRef}`,
    reminderId: `rem_${contractRef}`,
    contractRef,
    renewalDate: '2027-01-20',
    jurisdiction: 'DE',
    timeZone: 'Europe/Berlin',
    dueAt: new Date(due),
    recomputedAt: new Date(due),
    state: 'delivered',
    effects: 1,
    firstAttemptAt: new Date(due),
    ...changes,
  };
}

function expected(contractRef: string, due: string, changes: Partial<Expected> = {}): Expected {
  return { contractRef, dueAt: new Date(due), deliveryId: undefined, line: 2, ...changes };
}

function findings(mine: readonly Shadowed[], list?: readonly Expected[], now = NOW): string[] {
  return reconcileShadow({ ours: mine, expected: list, from: FROM, to: TO, now }).flatMap((row) =>
    row.findings.map((f) => `${row.ours?.deliveryId ?? row.expected?.contractRef}: ${f.kind}, ${f.note}`),
  );
}

const AT = '2026-12-22T08:00:00Z';

test('what agrees in contract and time has no finding', () => {
  expect(findings([ours('a', AT)], [expected('a', AT)])).toEqual([]);
});

test('a time that moved over the edge of the period is a different time, not a missing row and an extra one', () => {
  expect(findings([ours('a', '2026-12-28T08:00:00Z')], [expected('a', '2026-12-23T08:00:00Z')])).toEqual([
    'dlv_a: different_time, 5 d later than in the old list',
  ]);
});

test('what lies outside of the period on both sides is left out', () => {
  const late = '2026-12-29T08:00:00Z';
  expect(
    reconcileShadow({
      ours: [ours('a', late)],
      expected: [expected('a', late), expected('b', late)],
      from: FROM,
      to: TO,
      now: NOW,
    }),
  ).toEqual([]);
});

test('a stored time outside of the period that the calendar puts inside is found', () => {
  const moved = ours('a', '2026-12-28T08:00:00Z', { recomputedAt: new Date('2026-12-24T08:00:00Z') });
  expect(findings([moved])).toEqual(['dlv_a: different_time, 4 d later than the calendar says']);
});

test('several renewals of one contract are paired by the closest time', () => {
  const mine = [
    ours('a', '2026-12-22T08:00:00Z'),
    ours('b', '2026-12-24T08:00:00Z', { contractRef: 'a', renewalDate: '2027-01-22' }),
  ];
  const list = [expected('a', '2026-12-24T09:00:00Z'), expected('a', '2026-12-22T08:00:00Z', { line: 3 })];
  expect(findings(mine, list)).toEqual(['dlv_b: different_time, 1 h earlier than in the old list']);
});

test('a delivery id decides before the contract does', () => {
  const list = [expected('renamed', AT, { deliveryId: 'dlv_a' })];
  expect(findings([ours('a', AT)], list)).toEqual([]);
});

test('two deliveries for one renewal, two rows of the list and two effects are duplicates', () => {
  const mine = [
    ours('a', AT),
    ours('b', AT, { contractRef: 'a' }),
    ours('c', AT, { effects: 2 }),
    ours('d', AT),
  ];
  const list = [
    expected('a', AT),
    expected('c', AT, { line: 3 }),
    expected('d', AT, { line: 4 }),
    expected('d', AT, { line: 5 }),
  ];
  expect(new Set(findings(mine, list))).toEqual(
    new Set([
      'dlv_b: duplicate, dlv_a is for the same contract and renewal date',
      'dlv_c: duplicate, it would have been sent 2 times',
      'd: duplicate, the old list has it in line 4 as well',
    ]),
  );
});

test('what was due and did not go out is told; what has just fallen due may be on its way', () => {
  const waiting = ours('a', AT, { state: 'due', effects: 0, firstAttemptAt: undefined });
  expect(findings([waiting], undefined, new Date('2026-12-22T08:01:00Z'))).toEqual([]);
  expect(findings([waiting])).toEqual(['dlv_a: not_sent, it was due and did not go out: due']);
});

test('what was cancelled is no extra row, and says so where the old list has it', () => {
  const cancelled = ours('a', AT, { state: 'cancelled', effects: 0 });
  expect(findings([cancelled], [])).toEqual([]);
  expect(findings([cancelled], [expected('a', AT)])).toEqual(['a: missing, dlv_a was cancelled']);
});

test('what has no time under the calendars of today is told with the reason', () => {
  expect(findings([ours('a', AT, { recomputedAt: 'jurisdiction "XX" is unknown' })])).toEqual([
    'dlv_a: not_computed, the calendar gives no time: jurisdiction "XX" is unknown',
  ]);
});
