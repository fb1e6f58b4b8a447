import { pause } from '../../runtime/backoff.ts';

/**
 * Counts claims in hand and calls in flight per endpoint, and lets wait for a free place: claims for their call, wake-ups
 * for their claim.
 *
 * A claim takes a commit. So that no place is empty meanwhile, a few more than there are places are claimed of an endpoint
 * that many wait for, and that is quick enough to have them called within a tenth of a second.
 */
export interface Slots {
  /** What counts against each endpoint's limit when more is claimed: its claims in hand, less those that may wait. */
  taken(): ReadonlyMap<string, number>;
  /** Counts a claim. */
  take(endpointId: string): void;
  /** Resolves when the claim has its place for a call: what is urgent first. */
  begin(claim: Placed): Promise<void>;
  /** Gives the place of a claim, and what it counted for, to the next. */
  free(endpointId: string): void;
  callsInFlight(): number;
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
  /** Resolves every wake-up that waits. */
  wakeAll(): void;
  /** Lets every claim begin: its call is not made any more. */
  beginAll(): void;
}

interface Placed {
  readonly endpointId: string;
  /** How many calls the endpoint takes at once. */
  readonly limit: number;
  /** Near its deadline: it may have the places that are kept for such. */
  readonly urgent: boolean;
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

/** The claims of an endpoint in hand. */
interface Claims {
  inHand: number;
  calls: number;
  limit: number;
  readonly waiting: { readonly urgent: boolean; readonly resolve: () => void }[];
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
const AHEAD_MS = 100;
/** One place in so many is kept for what is near its deadline, as it is among claims. */
const KEPT = 8;

/** @param room  how many may wait in all at endpoints that are slow */
export function createSlots(room: number): Slots {
  const claims = new Map<string, Claims>();
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
    if (!claims.has(endpointId) && crowd.waiting.length === 0) crowds.delete(endpointId);
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

  /** Milliseconds from one call's end to the next one's; undefined: not known yet. */
  function paceOf({ paceMs, freedAtMs }: Crowd): number | undefined {
    if (paceMs === undefined || freedAtMs === undefined) return undefined;
    const silentMs = performance.now() - freedAtMs;
    // An endpoint that has just stopped answering was quick until now.
    return silentMs < PATIENCE_MS ? paceMs : Math.max(paceMs, silentMs);
  }

  function backlogOf(crowd: Crowd): number | undefined {
    const paceMs = paceOf(crowd);
    return paceMs === undefined ? undefined : paceMs * (crowd.waiting.length + 1);
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

  /** How many claims of an endpoint may wait for a place. */
  function aheadOf(endpointId: string, { limit }: Claims): number {
    const crowd = crowds.get(endpointId);
    const paceMs = crowd === undefined || crowd.probed ? undefined : paceOf(crowd);
    return paceMs === undefined ? 0 : Math.min(limit, Math.floor(AHEAD_MS / Math.max(paceMs, 1)));
  }

  const hasPlace = ({ calls, limit }: Claims, urgent: boolean): boolean =>
    calls < (urgent ? limit : limit - Math.floor(limit / KEPT));

  function beginNext(mine: Claims): void {
    for (
      let next = mine.waiting[0];
      next !== undefined && hasPlace(mine, next.urgent);
      next = mine.waiting[0]
    ) {
      mine.waiting.shift();
      mine.calls += 1;
      next.resolve();
    }
  }

  return {
    taken: () => new Map([...claims].map(([id, mine]) => [id, mine.inHand - aheadOf(id, mine)])),
    take(endpointId) {
      const mine = claims.get(endpointId) ?? { inHand: 0, calls: 0, limit: 0, waiting: [] };
      mine.inHand += 1;
      claims.set(endpointId, mine);
    },
    begin({ endpointId, limit, urgent }) {
      const mine = claims.get(endpointId);
      if (mine === undefined) throw new Error(`no claim of ${endpointId} was counted`);
      mine.limit = limit;
      return new Promise((resolve) => {
        const place = mine.waiting.findIndex((other) => other.urgent < urgent);
        mine.waiting.splice(place === -1 ? mine.waiting.length : place, 0, { urgent, resolve });
        beginNext(mine);
      });
    },
    free(endpointId) {
      const mine = claims.get(endpointId);
      if (mine === undefined) return;
      mine.inHand -= 1;
      mine.calls -= 1;
      beginNext(mine);
      if (mine.inHand === 0) claims.delete(endpointId);
      const crowd = crowds.get(endpointId);
      if (crowd === undefined) return;
      notePace(crowd);
      wake(crowd, 'first', true);
      forget(endpointId, crowd);
    },
    callsInFlight: () => [...claims.values()].reduce((sum, { calls }) => sum + calls, 0),
    async whenFree(endpointId, { limit, probed, urgent, again }) {
      // With nothing in flight nobody would call: the last one may have ended while it was asked for this place.
      if (!claims.has(endpointId)) {
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
    beginAll() {
      for (const mine of claims.values()) {
        mine.calls += mine.waiting.length;
        for (const { resolve } of mine.waiting.splice(0)) resolve();
      }
    },
  };
}
