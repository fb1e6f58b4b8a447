import { expect, test } from 'vitest';
import { checkChain, hashEntry, type TrailEntry } from '../../../src/domain/audit/chain.ts';

function chainOf(...details: string[]): TrailEntry[] {
  const entries: TrailEntry[] = [];
  for (const detail of details) {
    const entry = {
      entry: entries.length + 1,
      at: '2026-10-05T08:00:00.000000Z',
      event: 'hold',
      actor: 'test',
      detail,
    };
    const before = Buffer.from(entries.at(-1)?.sha256 ?? '', 'hex');
    entries.push({ ...entry, sha256: hashEntry(before, entry).toString('hex') });
  }
  return entries;
}

const whole = chainOf('{"n":1}', '{"n":2}', '{"n":3}', '{"n":"ä\\n"}');
const change = (at: number, to: Partial<TrailEntry>): TrailEntry[] =>
  whole.map((e, i) => (i === at ? { ...e, ...to } : e));

test('has nothing to say against a whole chain, or an empty one', () => {
  expect(checkChain(whole)).toEqual([]);
  expect(checkChain([])).toEqual([]);
});

test.each([
  ['detail', { detail: '{"n":9}' }],
  ['actor', { actor: 'somebody else' }],
  ['event', { event: 'release' }],
  ['instant, by a microsecond', { at: '2026-10-05T08:00:00.000001Z' }],
  ['hash', { sha256: '00'.repeat(32) }],
])('names the entry whose %s was changed', (_, to) => {
  expect(checkChain(change(1, to)).map((f) => f.entry)).toContain(2);
});

test('names the gap where an entry was removed, and the entry that stands twice', () => {
  expect(checkChain(whole.filter((e) => e.entry !== 2))[0]).toEqual({
    entry: 3,
    what: 'entries 2 to 2 are missing',
  });
  expect(checkChain([...whole.slice(0, 2), ...whole.slice(1)])[0]?.entry).toBe(2);
});

test('names both entries whose contents were exchanged', () => {
  const [first, second, third, fourth] = whole as [TrailEntry, TrailEntry, TrailEntry, TrailEntry];
  const exchanged = [first, { ...third, entry: 2 }, { ...second, entry: 3 }, fourth];
  expect(checkChain(exchanged).map((f) => f.entry)).toEqual([2, 3, 4]);
});
