import type { Overview, OverviewTaker } from '../../pipeline/reconcile/overview.ts';
import { pause } from '../../runtime/backoff.ts';
import { reasonOf } from '../../runtime/outage.ts';
import { isTransient } from '../../store/pool.ts';

/** Why there is no newer overview, and how old the one that is shown has become. */
export interface Staleness {
  readonly reason: string;
  readonly ageMs: number;
}

/**
 * Shows an overview every so often until the signal. While the database is away, as in a failover, it shows the last one
 * again and says so; it throws what is no such fault, and any fault before there is one to show.
 */
export async function watchOverviews(
  overviews: OverviewTaker,
  options: {
    readonly refreshMs: number;
    readonly signal: AbortSignal;
    /** `stale` undefined: it has just been taken. */
    readonly show: (overview: Overview, stale: Staleness | undefined) => void;
  },
): Promise<void> {
  let last: { readonly overview: Overview; readonly takenAtMs: number } | undefined;
  while (!options.signal.aborted) {
    try {
      last = { overview: await overviews.take(), takenAtMs: performance.now() };
      options.show(last.overview, undefined);
    } catch (error) {
      if (last === undefined || !isTransient(error)) throw error;
      options.show(last.overview, { reason: reasonOf(error), ageMs: performance.now() - last.takenAtMs });
    }
    await pause(options.refreshMs, options.signal);
  }
}
