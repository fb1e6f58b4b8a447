import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 20;

/**
 * Waits until `probe` gives something, and returns it.
 *
 * @throws after `withinMs` milliseconds, saying what was waited for
 */
export async function until<T>(
  what: string,
  probe: () => Promise<T | undefined | false> | T | undefined | false,
  withinMs = 30_000,
): Promise<T> {
  for (const startedAtMs = performance.now(); ; ) {
    const found = await probe();
    if (found !== undefined && found !== false) return found;
    if (performance.now() - startedAtMs > withinMs) throw new Error(`waited ${withinMs} ms for: ${what}`);
    await sleep(POLL_MS);
  }
}
