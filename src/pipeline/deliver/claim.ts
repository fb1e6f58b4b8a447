import { furthest, type WakeUp } from '../../domain/wakeup.ts';
import { retryWithBackoff } from '../../runtime/backoff.ts';
import { createBatcher } from '../../runtime/batch.ts';
import type { Log } from '../../runtime/log.ts';
import { type ClaimRequest, claimDeliveries } from '../../store/claims.ts';
import { isTransient, type Queryable } from '../../store/pool.ts';
import type { Claim, Verdict } from '../../store/verdict.ts';
import { createClockWatch } from './clock-watch.ts';

/** Asks for claims, many in one statement. */
export interface Claimer {
  /** Waits for a database that is away; rejects for a fault of ours, or when it is to give up. */
  ask(wakeUp: WakeUp): Promise<Asked>;
}

export interface Asked {
  readonly verdict: Verdict;
  readonly askedAtMs: number;
}

export interface ClaimerOptions
  extends Pick<ClaimRequest, 'leaseMs' | 'timeoutMs' | 'holder' | 'maxPerEndpoint'> {
  readonly db: Queryable;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** What a holder has under way, as of every statement. */
export interface UnderWay extends Pick<ClaimRequest, 'inHand'> {
  readonly taken: () => ClaimRequest['taken'];
  /** Told of each claim before the next statement is made. */
  readonly onClaimed: (claim: Claim) => void;
}

/** One statement at a time, so that the bound on calls in flight per endpoint is exact. */
const LANES = 1;
const MAX_BATCH = 250;

export function createClaimer(options: ClaimerOptions, { onClaimed, inHand, taken }: UnderWay): Claimer {
  const { db, log, signal, leaseMs, timeoutMs, holder, maxPerEndpoint } = options;
  const clock = createClockWatch(log);

  const batcher = createBatcher<WakeUp, Asked>({
    lanes: LANES,
    maxBatch: MAX_BATCH,
    run: async (wakeUps) => {
      const askedAtMs = performance.now();
      const verdicts = await askFor(furthest(wakeUps));
      return wakeUps.map((wakeUp) => {
        const verdict = verdicts.get(wakeUp.deliveryId);
        // The second wake-up of the same delivery has nothing to do, but may be the one that tells how it ended.
        if (verdict?.verdict !== 'ended') verdicts.delete(wakeUp.deliveryId);
        return { verdict: verdict ?? { verdict: 'nothing' }, askedAtMs };
      });
    },
  });

  async function askFor(wakeUps: readonly WakeUp[]): Promise<Map<string, Verdict>> {
    let askedAtMs = 0;
    const verdicts = await retryWithBackoff(
      () => {
        askedAtMs = performance.now();
        return claimDeliveries(db, {
          wakeUps,
          leaseMs,
          timeoutMs,
          holder,
          maxPerEndpoint,
          inHand,
          taken: taken(),
        });
      },
      {
        isTransient,
        signal,
        onEpisode: (episode) =>
          episode.kind === 'begins'
            ? log.fault('claim_waits_for_database', episode.error)
            : log.info('claim_resumed', { failures: episode.failures }),
      },
    );
    const tookMs = performance.now() - askedAtMs;
    for (const verdict of verdicts.values()) {
      if (verdict.verdict !== 'claimed') continue;
      onClaimed(verdict.claim);
      clock.see(verdict.claim.hostClockOffsetMs, tookMs);
    }
    return verdicts;
  }

  return { ask: (wakeUp) => batcher.add(wakeUp) };
}
