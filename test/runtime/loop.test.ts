import { describe, expect, it, vi } from 'vitest';
import { startLoop } from '../../src/runtime/loop.ts';

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
    const loop = startLoop({ pass, pauseMs: 1, onError: unexpected });
    expect(started).toBe(1);
    await vi.waitFor(() => expect(started).toBeGreaterThan(3), 10_000);
    await loop.stop();
  });

  it('never runs two passes at once, even when woken', async () => {
    const { pass, next, started } = createPass();
    const loop = startLoop({ pass, pauseMs: 1, onError: unexpected });
    loop.wake();
    await turn();
    expect(started()).toBe(1);
    const stopped = loop.stop();
    (await next()).end();
    await stopped;
  });

  it('runs again without a pause when the pass asks for it or somebody wakes it', async () => {
    const { pass, next, started } = createPass();
    const loop = startLoop({ pass, pauseMs: LONG_MS, onError: unexpected });
    (await next()).end({ again: true });
    const second = await next();
    loop.wake(); // during a pass: what it tells of may have come too late for that pass
    second.end();
    (await next()).end();
    await turn();
    expect(started()).toBe(3);
    loop.wake(); // during the pause
    const fourth = await next();
    const stopped = loop.stop();
    fourth.end();
    await stopped;
    expect(started()).toBe(4);
  });

  it('waits for the running pass when stopped, tells it so, and starts no other', async () => {
    const { pass, next, started } = createPass();
    const loop = startLoop({ pass, pauseMs: 1, onError: unexpected });
    const { end, signal } = await next();
    expect(signal.aborted).toBe(false);
    let isStopped = false;
    const stopped = loop.stop().then(() => {
      isStopped = true;
    });
    await turn();
    expect([signal.aborted, isStopped]).toEqual([true, false]);
    end({ again: true });
    await Promise.all([stopped, loop.stop()]);
    expect(started()).toBe(1);
  });

  it('stops in the middle of a long pause or a long backoff', async () => {
    for (const finish of ['end', 'fail'] as const) {
      const { pass, next, started } = createPass();
      const loop = startLoop({ pass, pauseMs: LONG_MS, onError: () => undefined });
      (await next())[finish](new Error('x') as never);
      await turn();
      await loop.stop();
      expect(started()).toBe(1);
    }
  });

  it('tells errors, also those thrown at once, and goes on', async () => {
    const told: unknown[] = [];
    let passes = 0;
    const loop = startLoop({
      pass: () => {
        passes += 1;
        if (passes === 1) throw new Error('at once');
        return passes === 2 ? Promise.reject(new Error('later')) : Promise.resolve();
      },
      pauseMs: 1,
      onError: (error) => told.push(error),
    });
    await vi.waitFor(() => expect(passes).toBeGreaterThan(2), 10_000);
    await loop.stop();
    expect(told).toEqual([new Error('at once'), new Error('later')]);
  });

  it('is not woken out of a backoff', async () => {
    const { pass, next, started } = createPass();
    const loop = startLoop({ pass, pauseMs: LONG_MS, onError: () => undefined });
    (await next()).fail(new Error('x'));
    await turn();
    loop.wake();
    await turn();
    expect(started()).toBe(1);
    await loop.stop();
  });
});
