import { pause } from '../../runtime/backoff.ts';

/** Counts calls in flight per endpoint, and lets a few wake-ups wait for a free place. */
export interface Slots {
  readonly inFlight: ReadonlyMap<string, number>;
  take(endpointId: string): void;
  free(endpointId: string): void;
  /** Resolves when a call of the endpoint ends; undefined: too many wait for that already. */
  whenFree(endpointId: string, maxWaiting: number): Promise<void> | undefined;
  /** Resolves everything that waits. */
  wakeAll(): void;
}

/** Places were kept for a row that somebody else is changing. */
const ASK_AGAIN_MS = 50;

export function createSlots(): Slots {
  const inFlight = new Map<string, number>();
  const waiting = new Map<string, (() => void)[]>();
  return {
    inFlight,
    take(endpointId) {
      inFlight.set(endpointId, (inFlight.get(endpointId) ?? 0) + 1);
    },
    free(endpointId) {
      const left = (inFlight.get(endpointId) ?? 1) - 1;
      if (left === 0) inFlight.delete(endpointId);
      else inFlight.set(endpointId, left);
      const queue = waiting.get(endpointId);
      queue?.shift()?.();
      if (queue?.length === 0) waiting.delete(endpointId);
    },
    whenFree(endpointId, maxWaiting) {
      const queue = waiting.get(endpointId) ?? [];
      // With nothing in flight nobody would call; such a wake-up asks again, but never without a pause.
      if (!inFlight.has(endpointId)) return pause(ASK_AGAIN_MS);
      if (queue.length >= maxWaiting) return undefined;
      waiting.set(endpointId, queue);
      return new Promise((resolve) => queue.push(resolve));
    },
    wakeAll() {
      const all = [...waiting.values()].flat();
      waiting.clear();
      for (const resolve of all) resolve();
    },
  };
}
