import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { awayMs } from '../../src/pipeline/deliver/crowd.ts';
import { createSlots, type Slots } from '../../src/pipeline/deliver/slots.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});

afterEach(() => {
  vi.useRealTimers();
});

/** Lets calls of an endpoint end, one every `everyMs`, while others take their places. */
function answer(slots: Slots, endpointId: string, everyMs: number): void {
  for (let calls = 0; calls < 20; calls += 1) {
    vi.advanceTimersByTime(everyMs);
    slots.take(endpointId);
    slots.free(endpointId);
  }
}

function countTurns(slots: Slots, endpointId: string, asking: number, limit = 32): number {
  return Array.from({ length: asking }, () => slots.whenFree(endpointId, limit)).filter(Boolean).length;
}

test('whoever has its turn within a second waits here, however many there are', () => {
  const slots = createSlots(10);
  slots.take('quick');
  void slots.whenFree('quick', 32);
  answer(slots, 'quick', 1);
  expect(countTurns(slots, 'quick', 400)).toBe(400);
});

test('of a slow endpoint as many wait as it takes at once', () => {
  const slots = createSlots(100);
  slots.take('slow');
  void slots.whenFree('slow', 32);
  answer(slots, 'slow', 2_000);
  expect(countTurns(slots, 'slow', 400)).toBe(32);
});

test('endpoints that never answered share the room', () => {
  const slots = createSlots(50);
  for (const endpointId of ['a', 'b', 'c']) slots.take(endpointId);
  expect(['a', 'b', 'c'].map((endpointId) => countTurns(slots, endpointId, 100))).toEqual([32, 18, 0]);
});

test('an endpoint that stops answering is quick no longer', () => {
  const slots = createSlots(10);
  slots.take('stuck');
  void slots.whenFree('stuck', 32);
  answer(slots, 'stuck', 1);
  vi.advanceTimersByTime(2_000);
  expect(countTurns(slots, 'stuck', 400)).toBe(10);
});

test('a place that becomes free goes to who asked first', async () => {
  const slots = createSlots(10);
  slots.take('ep');
  const order: string[] = [];
  const waiting = ['first', 'second'].map((name) => slots.whenFree('ep', 32)?.then(() => order.push(name)));
  slots.free('ep');
  await waiting[0];
  expect(order).toEqual(['first']);
});

test('a crowded wake-up goes away for about as long as those before it take, and never past its deadline', () => {
  const crowded = { verdict: 'crowded', endpointId: 'ep', limit: 32, failing: false } as const;
  expect(awayMs({ ...crowded, marginMs: undefined }, { timeoutMs: 10_000, backlogMs: undefined })).toBe(
    1_000,
  );
  expect(awayMs({ ...crowded, marginMs: undefined }, { timeoutMs: 10_000, backlogMs: 1e9 })).toBe(8_000);
  expect(
    awayMs({ ...crowded, failing: true, marginMs: 16_000 }, { timeoutMs: 10_000, backlogMs: undefined }),
  ).toBe(3_000);
});
