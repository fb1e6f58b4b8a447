import { pause } from '../../runtime/backoff.ts';

/** Counts calls in flight per endpoint, and lets wake-ups wait for a free place. */
export interface Slots {
  readonly inFlight: ReadonlyMap<string, number>;
  take(endpointId: string): void;
  free(endpointId: string): void;
  /**
   * Resolves when a place is free for one more, in the order of asking; undefined: better ask again later.
   *
   * Whoever has its turn within a second by the endpoint's own pace waits here: no way round is shorter. Of a slow
   * endpoint as many wait as it takes at once, while there is room; everybody else's wake-ups need the rest.
   */
  whenFree(endpointId: string, limit: number): Promise<void> | undefined;
  /** Milliseconds until those that wait have had their turn, by the endpoint's pace; undefined: none is known yet. */
  backlogMs(endpointId: string): number | undefined;
  /** Resolves everything that waits. */
  wakeAll(): void;
}

/** What an endpoint's calls in flight leave to know. */
interface Crowd {
  readonly waiting: (() => void)[];
  freedAtMs: number | undefined;
  /** Between two calls that end, smoothed; undefined before the second. */
  paceMs: number | undefined;
}

/** Places were kept for a row that somebody else is changing. */
const ASK_AGAIN_MS = 50;
const SHORT_WAIT_MS = 1_000;
const SMOOTHING = 0.2;

/** @param room  how many may wait in all at endpoints that are slow */
export function createSlots(room: number): Slots {
  const inFlight = new Map<string, number>();
  const crowds = new Map<string, Crowd>();
  let waitingInAll = 0;

  function wakeNext(crowd: Crowd): void {
    const next = crowd.waiting.shift();
    if (next === undefined) return;
    waitingInAll -= 1;
    next();
  }

  function notePace(crowd: Crowd): void {
    const nowMs = performance.now();
    if (crowd.freedAtMs !== undefined) {
      const sinceMs = nowMs - crowd.freedAtMs;
      crowd.paceMs =
        crowd.paceMs === undefined ? sinceMs : crowd.paceMs + SMOOTHING * (sinceMs - crowd.paceMs);
    }
    crowd.freedAtMs = nowMs;
  }

  function backlogMs(endpointId: string): number | undefined {
    const crowd = crowds.get(endpointId);
    if (crowd?.paceMs === undefined || crowd.freedAtMs === undefined) return undefined;
    // An endpoint that has just stopped answering was quick until now.
    const paceMs = Math.max(crowd.paceMs, performance.now() - crowd.freedAtMs);
    return paceMs * (crowd.waiting.length + 1);
  }

  return {
    inFlight,
    take(endpointId) {
      inFlight.set(endpointId, (inFlight.get(endpointId) ?? 0) + 1);
    },
    free(endpointId) {
      const left = (inFlight.get(endpointId) ?? 1) - 1;
      if (left === 0) inFlight.delete(endpointId);
      else inFlight.set(endpointId, left);
      const crowd = crowds.get(endpointId);
      if (crowd === undefined) return;
      notePace(crowd);
      wakeNext(crowd);
      if (left === 0 && crowd.waiting.length === 0) crowds.delete(endpointId);
    },
    whenFree(endpointId, limit) {
      // With nothing in flight nobody would call; such a wake-up asks again, but never without a pause.
      if (!inFlight.has(endpointId)) return pause(ASK_AGAIN_MS);
      const crowd = crowds.get(endpointId) ?? { waiting: [], freedAtMs: undefined, paceMs: undefined };
      crowds.set(endpointId, crowd);
      const isQuick = (backlogMs(endpointId) ?? Number.POSITIVE_INFINITY) < SHORT_WAIT_MS;
      if (!isQuick && (crowd.waiting.length >= limit || waitingInAll >= room)) return undefined;
      waitingInAll += 1;
      return new Promise((resolve) => crowd.waiting.push(resolve));
    },
    backlogMs,
    wakeAll() {
      for (const crowd of crowds.values()) {
        while (crowd.waiting.length > 0) wakeNext(crowd);
      }
    },
  };
}
