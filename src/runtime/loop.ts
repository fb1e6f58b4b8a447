import { backoffMs, pause } from './backoff.ts';
import type { Stop } from './scope.ts';

const LONGEST_BACKOFF_MS = 30_000;

/** What a loop does and how it rests. */
export interface LoopOptions {
  /** One pass; `again: true` asks for the next at once. The signal is aborted when the loop is to stop. */
  readonly pass: (signal: AbortSignal) => Promise<void | { readonly again: boolean }>;
  readonly pauseMs: number;
  /** Told every error of a pass; the loop goes on. */
  readonly onError: (error: unknown) => void;
  /** The part of the pause, 0 to 1, by which it is shortened or lengthened at random; 0.1 if undefined. */
  readonly jitter?: number;
}

/** A loop that runs. */
export interface Loop {
  /** Starts no further pass and waits for the one that runs. */
  readonly stop: Stop;
  /** Ends the pause, or asks for one more pass after the one that runs; does not cut short a backoff. */
  readonly wake: () => void;
}

/**
 * Runs passes one after the other until stopped, the first at once; they never overlap.
 *
 * After a failed pass it waits exponentially longer, with jitter, up to 30 s (and at least the pause).
 */
export function startLoop(options: LoopOptions): Loop {
  const stopping = new AbortController();
  let resting = new AbortController();
  let woken = false;

  async function run(): Promise<void> {
    let failures = 0;
    while (!stopping.signal.aborted) {
      woken = false;
      try {
        const result = await options.pass(stopping.signal);
        failures = 0;
        await rest(result?.again === true);
      } catch (error) {
        failures += 1;
        if (stopping.signal.aborted) return;
        options.onError(error);
        await pause(Math.max(options.pauseMs, backoffMs(failures, LONGEST_BACKOFF_MS)), stopping.signal);
      }
    }
  }

  async function rest(again: boolean): Promise<void> {
    if (stopping.signal.aborted) return;
    resting = new AbortController();
    const jitter = (options.jitter ?? 0.1) * (2 * Math.random() - 1);
    await pause(again || woken ? 0 : options.pauseMs * (1 + jitter), resting.signal);
  }

  const running = run();
  return {
    stop: () => {
      stopping.abort();
      resting.abort();
      return running;
    },
    wake: () => {
      woken = true;
      resting.abort();
    },
  };
}
