import { describe, expect, it, vi } from 'vitest';
import type { Episode } from '../../src/runtime/episode.ts';
import { pauseAfterFailureMs, startLoop } from '../../src/runtime/loop.ts';

const LONG_MS = 3_600_000;

/** A pass that tests let go on by hand. */
function createPass() {
  const waiting: {
    end: (result?: { again: boolean }) => void;
    fail: (error: Error) => void;
    signal: AbortSignal;
  }[] = [];
  let started = 0;
  const pass = (signal: AbortSignal) => {
    started += 1;
    return new Promise<void | { again: boolean }>((resolve, reject) => {
      waiting.push({ end: resolve, fail: reject, signal });
    });
  };
  const next = () =>
    vi.waitFor(() => {
      const current = waiting.shift();
      if (current === undefined) throw new Error('no pass runs');
      return current;
    });
  return { pass, next, started: () => started };
}

/** Lets everything happen that needs no time to pass. */
async function turn(): Promise<void> {
  for (let count = 0; count < 10; count += 1) await new Promise(setImmediate);
}

function unexpected(error: unknown): void {
  throw error;
}

describe('a loop', () => {
  it('runs its first pass at once and the next after the pause', async () => {
    let started = 0;
    const pass = async () => {
      started += 1;
    };
    const stop = startLoop({ pass, pauseMs: 1, onEpisode: unexpected });
    expect(started).toBe(1);
    await vi.waitFor(() => expect(started).toBeGreaterThan(3), 10_000);
    await stop();
  });

  it('never runs two passes at once', async () => {
    const { pass, next, started } = createPass();
    const stop = startLoop({ pass, pauseMs: 1, onEpisode: unexpected });
    await turn();
    expect(started()).toBe(1);
    const stopped = stop();
    (await next()).end();
    await stopped;
  });

  it('runs again without a pause when the pass asks for it', async () => {
    const { pass, next, started } = createPass();
    const stop = startLoop({ pass, pauseMs: LONG_MS, onEpisode: unexpected });
    (await next()).end({ again: true });
    (await next()).end();
    await turn();
    expect(started()).toBe(2);
    await stop();
    expect(started()).toBe(2);
  });

  it('waits for the running pass when stopped, tells it so, and starts no other', async () => {
    const { pass, next, started } = createPass();
    const stop = startLoop({ pass, pauseMs: 1, onEpisode: unexpected });
    const { end, signal } = await next();
    expect(signal.aborted).toBe(false);
    let isStopped = false;
    const stopped = stop().then(() => {
      isStopped = true;
    });
    await turn();
    expect([signal.aborted, isStopped]).toEqual([true, false]);
    end({ again: true });
    await Promise.all([stopped, stop()]);
    expect(started()).toBe(1);
  });

  it('stops in the middle of a long pause or a long backoff', async () => {
    for (const finish of ['end', 'fail'] as const) {
      const { pass, next, started } = createPass();
      const stop = startLoop({ pass, pauseMs: LONG_MS, onEpisode: () => undefined });
      (await next())[finish](new Error('x') as never);
      await turn();
      await stop();
      expect(started()).toBe(1);
    }
  });

  it('tells failures once for each cause, also those thrown at once, and once when they are over', async () => {
    const cutOff = () => Object.assign(new Error(`cut off ${passes}`), { code: 'ECONNRESET' });
    const refused = () => Object.assign(new Error(`refused ${passes}`), { code: 'ECONNREFUSED' });
    const errors = [
      () => new Error('a bug'),
      () => new Error('a bug'),
      cutOff,
      refused,
      refused,
      () => new Error('a bug'),
    ];
    const told: Episode[] = [];
    let passes = 0;
    const stop = startLoop({
      pass: () => {
        const error = errors[passes]?.();
        passes += 1;
        if (error === undefined) return Promise.resolve();
        if (passes === 1) throw error;
        return Promise.reject(error);
      },
      pauseMs: 1,
      onEpisode: (episode) => told.push(episode),
    });
    await vi.waitFor(() => expect(passes).toBeGreaterThan(8), 10_000);
    await stop();
    expect(told).toEqual([
      { kind: 'begins', error: new Error('a bug') },
      { kind: 'begins', error: expect.objectContaining({ message: 'cut off 2' }) },
      { kind: 'begins', error: new Error('a bug') },
      { kind: 'ends', failures: 6 },
    ]);
  });

  it('waits longer from failure to failure, half a minute at most, and not for a whole long pause', () => {
    const longest = (pauseMs: number) => [1, 7, 100].map((n) => pauseAfterFailureMs(pauseMs, n, () => 1));
    const least = (pauseMs: number) => [1, 7, 100].map((n) => pauseAfterFailureMs(pauseMs, n, () => 0));
    expect([longest(5_000), least(5_000)]).toEqual([
      [5_500, 6_400, 30_000],
      [4_500, 4_500, 4_500],
    ]);
    expect([longest(LONG_MS), least(LONG_MS)]).toEqual([
      [33_000, 33_000, 33_000],
      [27_000, 27_000, 27_000],
    ]);
  });
});
