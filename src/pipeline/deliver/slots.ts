import { pause } from '../../runtime/backoff.ts';

/** Counts calls in flight per endpoint, and lets wake-ups wait for a free place. */
export interface Slots {
  readonly inFlight: ReadonlyMap<string, number>;
  take(endpointId: string): void;
  free(endpointId: string): void;
  /**
   * Resolves with true when a place is free for one more: what is urgent first, and otherwise in the order of asking;
   * with false when it is better to go away and ask later. Whoever has its turn takes the place or passes it on.
   *
   * Whoever has its turn within a second by the endpoint's own pace waits here: no way round is shorter. Of a slow
   * endpoint as many wait as it takes at once, while there is room; everybody else's wake-ups need the rest. Of one
   * that fails a single one waits. Any other is taken for quick until a quarter of a second has shown otherwise.
   */
  whenFree(endpointId: string, ask: Ask): Promise<boolean>;
  /** Gives a turn that nothing came of to the next. */
  passOn(endpointId: string): void;
  /** Milliseconds until those that wait have had their turn, by the endpoint's pace; undefined: none is known yet. */
  backlogMs(endpointId: string): number | undefined;
  /** Resolves everything that waits. */
  wakeAll(): void;
}

interface Ask {
  /** How many calls the endpoint takes at once. */
  readonly limit: number;
  /** Fails so much that it is called one at a time. */
  readonly probed: boolean;
  /** Near its deadline: it may have the places that are kept for such. */
  readonly urgent: boolean;
  /** Whether it had its turn already, and somebody else was quicker: it does not go to the end again. */
  readonly again: boolean;
}

interface Waiting {
  readonly urgent: boolean;
  readonly resolve: (isFree: boolean) => void;
}

/** What an endpoint's calls in flight leave to know. */
interface Crowd {
  readonly waiting: Waiting[];
  readonly sinceMs: number;
  freedAtMs: number | undefined;
  /** Between two calls that end, on average over the last ones; undefined before the second. */
  paceMs: number | undefined;
  /** How many gaps that average has seen. */
  gaps: number;
  probed: boolean;
  /** How many may wait even if the endpoint is slow. */
  most: number;
  watch: NodeJS.Timeout | undefined;
}

/** For whom nothing is free twice, though nothing is in flight: places were kept for a row that somebody else changes. */
const ASK_AGAIN_MS = 50;
const SHORT_WAIT_MS = 1_000;
const PATIENCE_MS = 250;
/** So many wait at the slowest endpoint, in order, before one is sent away; over as many gaps, at least, a pace is taken. */
const FEW = 8;

/** @param room  how many may wait in all at endpoints that are slow */
export function createSlots(room: number): Slots {
  const inFlight = new Map<string, number>();
  const crowds = new Map<string, Crowd>();
  let waitingInAll = 0;

  function wake(crowd: Crowd, which: 'first' | 'last', isFree: boolean): void {
    const one = which === 'first' ? crowd.waiting.shift() : crowd.waiting.pop();
    if (one === undefined) return;
    waitingInAll -= 1;
    one.resolve(isFree);
  }

  /** Before everything less urgent, and behind its like, unless it was at the head already. */
  function line({ waiting }: Crowd, one: Waiting, again: boolean): void {
    const isBehind = (other: Waiting): boolean =>
      again ? other.urgent <= one.urgent : other.urgent < one.urgent;
    const place = waiting.findIndex(isBehind);
    waiting.splice(place === -1 ? waiting.length : place, 0, one);
  }

  function forget(endpointId: string, crowd: Crowd): void {
    if (!inFlight.has(endpointId) && crowd.waiting.length === 0) crowds.delete(endpointId);
  }

  function notePace(crowd: Crowd): void {
    const nowMs = performance.now();
    if (crowd.freedAtMs !== undefined) {
      // Calls begin together when their claims commit together, and end so: a few gaps tell nothing.
      crowd.gaps = Math.min(crowd.gaps + 1, 2 * Math.max(crowd.most, FEW));
      const before = crowd.paceMs ?? 0;
      crowd.paceMs = before + (nowMs - crowd.freedAtMs - before) / crowd.gaps;
    }
    crowd.freedAtMs = nowMs;
  }

  function backlogOf(crowd: Crowd): number | undefined {
    if (crowd.paceMs === undefined || crowd.freedAtMs === undefined) return undefined;
    const silentMs = performance.now() - crowd.freedAtMs;
    // An endpoint that has just stopped answering was quick until now.
    const paceMs = silentMs < PATIENCE_MS ? crowd.paceMs : Math.max(crowd.paceMs, silentMs);
    return paceMs * (crowd.waiting.length + 1);
  }

  const isCrammed = (crowd: Crowd): boolean => crowd.waiting.length > crowd.most || waitingInAll > room;

  function isQuick(crowd: Crowd): boolean {
    if (crowd.probed) return false;
    const backlogMs = backlogOf(crowd);
    return backlogMs === undefined
      ? performance.now() - crowd.sinceMs < PATIENCE_MS
      : backlogMs < SHORT_WAIT_MS;
  }

  /** While more wait than a slow endpoint may have: they leave when it turns out to be one. */
  function watchOver(crowd: Crowd): void {
    crowd.watch ??= setTimeout(() => {
      crowd.watch = undefined;
      if (!isCrammed(crowd)) return;
      if (isQuick(crowd)) return watchOver(crowd);
      while (crowd.waiting.length > 0 && isCrammed(crowd)) wake(crowd, 'last', false);
    }, PATIENCE_MS).unref();
  }

  function crowdOf(endpointId: string): Crowd {
    const known = crowds.get(endpointId);
    if (known !== undefined) return known;
    const crowd: Crowd = {
      waiting: [],
      sinceMs: performance.now(),
      freedAtMs: undefined,
      paceMs: undefined,
      gaps: 0,
      probed: false,
      most: 0,
      watch: undefined,
    };
    crowds.set(endpointId, crowd);
    return crowd;
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
      wake(crowd, 'first', true);
      forget(endpointId, crowd);
    },
    async whenFree(endpointId, { limit, probed, urgent, again }) {
      // With nothing in flight nobody would call: the last one may have ended while it was asked for this place.
      if (!inFlight.has(endpointId)) {
        if (again) await pause(ASK_AGAIN_MS);
        return true;
      }
      const crowd = crowdOf(endpointId);
      crowd.probed = probed;
      crowd.most = probed ? 1 : Math.max(limit, FEW);
      if (crowd.waiting.length >= crowd.most || waitingInAll >= room) {
        if (!isQuick(crowd)) return false;
        watchOver(crowd);
      }
      waitingInAll += 1;
      return new Promise((resolve) => line(crowd, { urgent, resolve }, again));
    },
    passOn(endpointId) {
      const crowd = crowds.get(endpointId);
      if (crowd === undefined) return;
      wake(crowd, 'first', true);
      forget(endpointId, crowd);
    },
    backlogMs(endpointId) {
      const crowd = crowds.get(endpointId);
      return crowd && backlogOf(crowd);
    },
    wakeAll() {
      for (const crowd of crowds.values()) {
        while (crowd.waiting.length > 0) wake(crowd, 'first', true);
      }
    },
  };
}
