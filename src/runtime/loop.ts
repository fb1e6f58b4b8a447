import { backoffMs, pause } from './backoff.ts';
import { createEpisodes, type Episode } from './episode.ts';
import type { Stop } from './scope.ts';

const LONGEST_BACKOFF_MS = 30_000;
/** The part of a pause by which it is shortened or lengthened at random. */
const JITTER = 0.1;

/** What a loop does and how it rests. */
export interface LoopOptions {
  /** One pass; `again: true` asks for the next at once. The signal is aborted when the loop is to stop. */
  readonly pass: (signal: AbortSignal) => Promise<void | { readonly again: boolean }>;
  readonly pauseMs: number;
  /** Told when passes begin to fail, or fail for another cause, and when one succeeds again; the loop goes on. */
  readonly onEpisode: (episode: Episode) => void;
}

/**
 * Runs passes one after the other until stopped, the first at once; they never overlap. Stopping waits for the one that runs.
 *
 * Pauses vary by a tenth, so that processes do not move in step. After a failed pass it waits exponentially longer, with
 * jitter, up to 30 s, and no less than a shorter pause.
 */
export function startLoop(options: LoopOptions): Stop {
  const stopping = new AbortController();

  async function run(): Promise<void> {
    const episodes = createEpisodes(options.onEpisode);
    let failures = 0;
    while (!stopping.signal.aborted) {
      let pauseMs: number;
      try {
        const result = await options.pass(stopping.signal);
        failures = 0;
        episodes.succeeded();
        pauseMs = result?.again === true ? 0 : varied(options.pauseMs, Math.random);
      } catch (error) {
        failures += 1;
        if (stopping.signal.aborted) return;
        episodes.failed(error);
        pauseMs = pauseAfterFailureMs(options.pauseMs, failures);
      }
      await pause(pauseMs, stopping.signal);
    }
  }

  const running = run();
  return () => {
    stopping.abort();
    return running;
  };
}

/**
 * Milliseconds until the next pass after so many failures in a row: the pause, or longer, but about 30 s at most.
 */
export function pauseAfterFailureMs(
  pauseMs: number,
  failures: number,
  random: () => number = Math.random,
): number {
  const leastMs = varied(Math.min(pauseMs, LONGEST_BACKOFF_MS), random);
  return Math.max(leastMs, backoffMs(failures, LONGEST_BACKOFF_MS, random));
}

function varied(ms: number, random: () => number): number {
  return ms * (1 + JITTER * (2 * random() - 1));
}
