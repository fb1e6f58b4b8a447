import { expect, test } from 'vitest';
import { compareExpected, type DueReminder, findGaps } from '../../../src/domain/audit/completeness.ts';

const record = { cycle: 1, state: 'delivered', inTime: true, shadow: false };

function reminder(changes: Partial<DueReminder> = {}): DueReminder {
  return {
    reminderId: 'rem_1',
    deliveryId: 'dlv_1',
    contractRef: 'pol-1',
    renewalDate: '2027-03-31',
    state: 'delivered',
    cycle: 1,
    hasEnded: true,
    records: [record],
    delivered: [1],
    unknown: [],
    ...changes,
  };
}

const kinds = (changes: Partial<DueReminder>): string[] => findGaps(reminder(changes)).map((g) => g.kind);

test('has nothing to say against one outcome in time, or a dead letter whose attempts are all known', () => {
  expect(kinds({})).toEqual([]);
  expect(kinds({ unknown: [1], delivered: [2] })).toEqual([]);
  const dead = { ...record, state: 'dead_lettered', inTime: false };
  expect(kinds({ state: 'dead_lettered', records: [dead], delivered: [] })).toEqual([]);
});

test.each<[string, Partial<DueReminder>, string]>([
  ['its delivery is not there', { state: undefined }, 'missing'],
  ['it has not ended', { state: 'held', hasEnded: false, records: [], delivered: [] }, 'missing'],
  ['its record is not there', { records: [] }, 'missing'],
  ['nothing was sent, in shadow mode', { records: [{ ...record, shadow: true }] }, 'missing'],
  ['two attempts were answered 2xx', { delivered: [1, 2] }, 'extra'],
  ['it has two records of one cycle', { records: [record, record] }, 'extra'],
  ['it was delivered after its deadline', { records: [{ ...record, inTime: false }] }, 'late'],
  [
    'it was given up, and an attempt is not known to have failed',
    {
      state: 'dead_lettered',
      records: [{ ...record, state: 'dead_lettered', inTime: false }],
      delivered: [],
      unknown: [3],
    },
    'unknown',
  ],
])('finds that %s', (_, changes, kind) => {
  expect(kinds(changes)).toContain(kind);
});

test('does not take equal counts for completeness', () => {
  const due = [reminder(), reminder({ contractRef: 'pol-3', deliveryId: 'dlv_3' })];
  const expected = ['pol-1', 'pol-2'].map((contractRef) => ({ contractRef, renewalDate: undefined }));
  expect(compareExpected(expected, due).map((g) => [g.kind, g.contractRef, g.deliveryId])).toEqual([
    ['missing', 'pol-2', undefined],
    ['extra', 'pol-3', 'dlv_3'],
  ]);
});

test('compares renewals where they are given, and finds one reminder too many', () => {
  const second = reminder({ deliveryId: 'dlv_2', renewalDate: '2028-03-31' });
  const expect1 = [{ contractRef: 'pol-1', renewalDate: '2027-03-31' }];
  expect(compareExpected(expect1, [reminder()])).toEqual([]);
  expect(compareExpected(expect1, [reminder(), second]).map((g) => g.deliveryId)).toEqual(['dlv_2']);
  const either = [{ contractRef: 'pol-1', renewalDate: undefined }];
  expect(compareExpected(either, [reminder(), second]).map((g) => g.what)).toEqual(['there are 2 reminders']);
  expect(compareExpected([...expect1, ...expect1], [reminder()])).toEqual([]);
});
