import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { awayMs } from '../../src/pipeline/deliver/crowd.ts';
import { createSlots, type Slots } from '../../src/pipeline/deliver/slots.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
});

afterEach(() => {
  vi.useRealTimers();
});

const ask = { limit: 32, probed: false, urgent: false, again: false };

/** Lets calls of an endpoint end, one every `everyMs`, while others take their places. */
async function answer(slots: Slots, endpointId: string, everyMs: number, calls = 20): Promise<void> {
  for (let call = 0; call < calls; call += 1) {
    await vi.advanceTimersByTimeAsync(everyMs);
    slots.take(endpointId);
    void slots.begin({ ...ask, endpointId });
    slots.free(endpointId);
  }
  await vi.advanceTimersByTimeAsync(0);
}

/** How those that ask fare: `away` counts those that were told to ask later. */
function crowd(slots: Slots, endpointId: string, asking: number, how: Partial<typeof ask> = {}) {
  const seen = { turns: 0, away: 0 };
  for (let n = 0; n < asking; n += 1) {
    void slots.whenFree(endpointId, { ...ask, ...how }).then((isFree) => {
      seen[isFree ? 'turns' : 'away'] += 1;
    });
  }
  return seen;
}

test('whoever has its turn within a second waits here, however many there are', async () => {
  const slots = createSlots(10);
  slots.take('quick');
  void slots.whenFree('quick', ask);
  await answer(slots, 'quick', 1);
  const seen = crowd(slots, 'quick', 400);
  await answer(slots, 'quick', 1, 400);
  expect(seen).toEqual({ turns: 400, away: 0 });
});

test('of a slow endpoint as many wait as it takes at once', async () => {
  const slots = createSlots(100);
  slots.take('slow');
  void slots.whenFree('slow', ask);
  await answer(slots, 'slow', 2_000);
  const seen = crowd(slots, 'slow', 400);
  await vi.advanceTimersByTimeAsync(0);
  expect(seen).toEqual({ turns: 0, away: 368 });
});

test('of a failing endpoint one waits, however quickly it fails', async () => {
  const slots = createSlots(100);
  slots.take('fails');
  void slots.whenFree('fails', ask);
  await answer(slots, 'fails', 1);
  const seen = crowd(slots, 'fails', 400, { probed: true });
  await vi.advanceTimersByTimeAsync(0);
  expect(seen).toEqual({ turns: 0, away: 399 });
});

test('an endpoint that never answered is given a moment; then those that never did share the room', async () => {
  const slots = createSlots(50);
  for (const endpointId of ['a', 'b', 'c']) slots.take(endpointId);
  const seen = ['a', 'b', 'c'].map((endpointId) => crowd(slots, endpointId, 100));
  await vi.advanceTimersByTimeAsync(200);
  expect(seen.map(({ away }) => away)).toEqual([0, 0, 0]);
  await vi.advanceTimersByTimeAsync(100);
  expect(seen.reduce((sum, { away }) => sum + away, 0)).toBeGreaterThanOrEqual(250);
});

test('an endpoint that answers in that moment keeps its crowd', async () => {
  const slots = createSlots(50);
  slots.take('new');
  const seen = crowd(slots, 'new', 300);
  await answer(slots, 'new', 2, 300);
  expect(seen).toEqual({ turns: 300, away: 0 });
});

test('an endpoint that stops answering is quick no longer, and its crowd leaves', async () => {
  const slots = createSlots(100);
  slots.take('stuck');
  void slots.whenFree('stuck', ask);
  await answer(slots, 'stuck', 1);
  const seen = crowd(slots, 'stuck', 400);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(seen).toEqual({ turns: 0, away: 368 });
});

test('calls whose claims commit together end together: the rests between are not the endpoint’s pace', async () => {
  const slots = createSlots(50);
  slots.take('ep');
  void slots.whenFree('ep', ask);
  const burst = async (): Promise<void> => {
    await vi.advanceTimersByTimeAsync(30);
    await answer(slots, 'ep', 0, 16);
  };
  for (let bursts = 0; bursts < 5; bursts += 1) await burst();
  await vi.advanceTimersByTimeAsync(25);
  const seen = crowd(slots, 'ep', 400);
  for (let bursts = 0; bursts < 26; bursts += 1) await burst();
  expect(seen).toEqual({ turns: 400, away: 0 });
});

/** Claims that begin one after another, and the numbers of those that have. */
function begin(slots: Slots, endpointId: string, claims: readonly Partial<typeof ask>[]): number[] {
  const begun: number[] = [];
  claims.forEach((how, number) => {
    slots.take(endpointId);
    void slots.begin({ ...ask, ...how, endpointId }).then(() => begun.push(number));
  });
  return begun;
}

test('no more calls are made at once than the endpoint takes; the last places are kept for what is urgent, which goes first', async () => {
  const slots = createSlots(100);
  const limit = 16;
  const begun = begin(slots, 'ep', [
    ...Array.from({ length: 20 }, () => ({ limit })),
    ...Array.from({ length: 4 }, () => ({ limit, urgent: true })),
  ]);
  await vi.advanceTimersByTimeAsync(0);
  expect(begun).toEqual([...Array.from({ length: 14 }, (_, n) => n), 20, 21]);
  expect(slots.callsInFlight()).toBe(16);
  slots.free('ep');
  await vi.advanceTimersByTimeAsync(0);
  expect(begun.slice(16)).toEqual([22]);
  for (let ended = 0; ended < 4; ended += 1) slots.free('ep');
  await vi.advanceTimersByTimeAsync(0);
  expect(begun.slice(16)).toEqual([22, 23, 14]);
});

test('more is claimed than there are places only where they are called soon, and not for an endpoint that has gone silent', async () => {
  const slots = createSlots(100);
  const counted = async (
    endpointId: string,
    everyMs: number,
    how: Partial<typeof ask> = {},
  ): Promise<number> => {
    begin(
      slots,
      endpointId,
      Array.from({ length: 32 }, () => ask),
    );
    expect(slots.taken().get(endpointId)).toBe(32);
    crowd(slots, endpointId, 1, how);
    await answer(slots, endpointId, everyMs, 64);
    return slots.taken().get(endpointId) ?? Number.NaN;
  };
  expect(await counted('quick', 2)).toBe(0);
  expect(await counted('steady', 20)).toBe(27);
  expect(await counted('slow', 500)).toBe(32);
  expect(await counted('fails', 2, { probed: true })).toBe(32);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(slots.taken().get('quick')).toBe(32);
});

test('when calls are given up, claims that wait begin, to be handed back', async () => {
  const slots = createSlots(100);
  const begun = begin(
    slots,
    'ep',
    Array.from({ length: 40 }, () => ({ limit: 8 })),
  );
  slots.beginAll();
  await vi.advanceTimersByTimeAsync(0);
  expect(begun).toHaveLength(40);
});

/** Waits in line under these names, and lists them as they have their turns. */
async function lineUp(slots: Slots, who: Record<string, Partial<typeof ask>>): Promise<string[]> {
  const order: string[] = [];
  for (const [name, how] of Object.entries(who)) {
    void slots.whenFree('ep', { ...ask, ...how }).then(() => order.push(name));
  }
  await vi.advanceTimersByTimeAsync(0);
  return order;
}

test('turns come in the order of asking, urgent ones first; whoever lost one has the next', async () => {
  const slots = createSlots(10);
  slots.take('ep');
  const order = await lineUp(slots, {
    first: {},
    urgent: { urgent: true },
    second: {},
    lost: { again: true },
    alsoUrgent: { urgent: true },
  });
  await answer(slots, 'ep', 1, 5);
  expect(order).toEqual(['urgent', 'alsoUrgent', 'lost', 'first', 'second']);
});

test('a turn that nothing comes of is the next one’s, down to the last', async () => {
  const slots = createSlots(10);
  slots.take('ep');
  const order = await lineUp(slots, { first: {}, second: {}, third: {} });
  slots.free('ep');
  await vi.advanceTimersByTimeAsync(0);
  expect(order).toEqual(['first']);
  slots.passOn('ep');
  slots.passOn('ep');
  slots.passOn('ep');
  await vi.advanceTimersByTimeAsync(0);
  expect(order).toEqual(['first', 'second', 'third']);
});

test('a crowded wake-up goes away for about as long as those before it take, and never past its deadline', () => {
  const crowded = { verdict: 'crowded', endpointId: 'ep', limit: 32, probed: false, urgent: false } as const;
  expect(awayMs({ ...crowded, marginMs: undefined }, { timeoutMs: 10_000, backlogMs: undefined })).toBe(
    1_000,
  );
  expect(awayMs({ ...crowded, marginMs: undefined }, { timeoutMs: 10_000, backlogMs: 1e9 })).toBe(8_000);
  expect(
    awayMs({ ...crowded, probed: true, marginMs: 16_000 }, { timeoutMs: 10_000, backlogMs: undefined }),
  ).toBe(3_000);
});
