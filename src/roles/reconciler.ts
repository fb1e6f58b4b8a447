import { namesOf } from '../broker/topology.ts';
import { feed } from '../pipeline/feed.ts';
import { notify } from '../pipeline/notify.ts';
import { createReconciler } from '../pipeline/reconcile.ts';
import type { Config } from '../runtime/config.ts';
import type { Log } from '../runtime/log.ts';
import { startLoop } from '../runtime/loop.ts';
import { inScope, type Stop } from '../runtime/scope.ts';
import { ensurePartitions, requireMigrated } from '../store/migrate.ts';
import { openParts } from './parts.ts';

const NOTICE_INTERVAL_MS = 1_000;
const THROTTLED_PAUSE_MS = 1_000;
const PARTITION_INTERVAL_MS = 60 * 60_000;

/** The reconciler role: feeds the ladder, announces again what has no message, publishes notices, makes partitions. */
export function startReconciler(config: Config, log: Log): Promise<Stop> {
  return inScope(async (scope) => {
    const parts = await openParts(scope, config, log);
    await requireMigrated(parts.pool);
    const names = namesOf(config.broker.prefix);
    const abort = new AbortController();
    const common = { ...parts, log, deliveriesQueue: names.deliveries, signal: abort.signal };
    const reconciler = createReconciler({
      ...common,
      graceMs: config.reconciler.graceMs,
      timeoutMs: config.egress.timeoutMs,
    });

    const loop = (name: string, pauseMs: number, pass: () => Promise<void | { again: boolean }>): void => {
      scope.own(startLoop({ pass, pauseMs, onError: (error) => log.fault(`${name}_failed`, error) }), (l) =>
        l.stop(),
      );
    };
    loop('feed', config.feeder.intervalMs, async () => {
      for (;;) {
        const report = await feed({ ...common, horizonMs: config.horizonMs });
        if (report.published > 0)
          log.info('fed', { published: report.published, throttled: report.throttled });
        if (!report.throttled || abort.signal.aborted) return;
        await new Promise((resolve) => setTimeout(resolve, THROTTLED_PAUSE_MS));
      }
    });
    loop('reconcile', config.reconciler.intervalMs, async () => {
      const report = await reconciler.reconcile();
      if (report.announced + report.lapsed + report.missed > 0) log.warn('reconciled', { ...report });
    });
    loop('notify', NOTICE_INTERVAL_MS, async () => {
      await notify({ ...parts, names });
    });
    loop('partitions', PARTITION_INTERVAL_MS, async () => {
      const made = await ensurePartitions(parts.pool);
      if (made > 0) log.info('partitions_made', { made });
    });
    scope.onStop(() => abort.abort());
    log.info('reconciler_started', { horizon_ms: config.horizonMs });
  });
}
