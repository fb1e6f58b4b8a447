import { setTimeout as sleep } from 'node:timers/promises';
import type { Episode } from './episode.ts';

const FIRST_MS = 100;
const LONGEST_MS = 5_000;

/** How often, and until when, something is tried again. */
export interface RetryOptions {
  /** Whether trying again can help; what it denies is thrown as it came. */
  readonly isTransient: (error: unknown) => boolean;
  /** Ends the waiting; the last error is thrown. */
  readonly signal?: AbortSignal;
  /** Told once when an outage begins and once when it is over. */
  readonly onEpisode?: (episode: Episode) => void;
  readonly random?: () => number;
}

/**
 * Milliseconds to wait after so many failures in a row: exponential with full jitter, never under a millisecond.
 *
 * @param failures  1 after the first failure
 */
export function backoffMs(failures: number, longestMs: number, random: () => number = Math.random): number {
  const ceilingMs = Math.min(longestMs, FIRST_MS * 2 ** Math.min(failures - 1, 30));
  return Math.max(1, Math.ceil(random() * ceilingMs));
}

/** Runs `fn` until it succeeds, for faults that pass: 100 ms to 5 s between tries. */
export async function retryWithBackoff<T>(fn: () => Promise<T>, options: RetryOptions): Promise<T> {
  for (let failures = 0; ; ) {
    try {
      const result = await fn();
      if (failures > 0) options.onEpisode?.({ kind: 'ends', failures });
      return result;
    } catch (error) {
      if (!options.isTransient(error) || options.signal?.aborted) throw error;
      failures += 1;
      if (failures === 1) options.onEpisode?.({ kind: 'begins', error });
      await pause(backoffMs(failures, LONGEST_MS, options.random), options.signal);
      if (options.signal?.aborted) throw error;
    }
  }
}

/** Waits, or less if the signal says so; never rejects. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await sleep(ms, undefined, signal === undefined ? {} : { signal }).catch(() => undefined);
}
