import { namesOf } from '../broker/topology.ts';
import { createMissMeter } from '../pipeline/deliver/measure-deliveries.ts';
import { createRiskWatch } from '../pipeline/reconcile/at-risk.ts';
import { feed } from '../pipeline/reconcile/feed.ts';
import { notify } from '../pipeline/reconcile/notify.ts';
import { createObserver } from '../pipeline/reconcile/observe.ts';
import { createReconciler } from '../pipeline/reconcile/reconcile.ts';
import { pause } from '../runtime/backoff.ts';
import type { Config } from '../runtime/config.ts';
import type { Episode } from '../runtime/episode.ts';
import type { Log } from '../runtime/log.ts';
import { startLoop } from '../runtime/loop.ts';
import { inScope, type Stop } from '../runtime/scope.ts';
import { ensurePartitions, requireMigrated } from '../store/migrate.ts';
import { startEvidenceLoops } from './evidence.ts';
import { type LoopPass, measureLoop, measureParts } from './measure.ts';
import { openParts, type Shared } from './parts.ts';
import { addPartsProbes } from './readiness.ts';

const NOTICE_INTERVAL_MS = 1_000;
const THROTTLED_PAUSE_MS = 1_000;
const PARTITION_INTERVAL_MS = 60 * 60_000;
/** Loops that hold a connection for their lock while they work on others: with none left they would wait for each other. */
export const LOCKS = 5;

/** The reconciler role: feeds the ladder, announces again what has no message, publishes notices, makes partitions, seals and drops evidence. */
export function startReconciler(config: Config, log: Log, { meters, readiness }: Shared): Promise<Stop> {
  return inScope(async (scope) => {
    const { database } = config;
    const withLocks = { ...config, database: { ...database, poolSize: database.poolSize + LOCKS } };
    const parts = await openParts(scope, withLocks, log);
    await requireMigrated(parts.pool);
    measureParts(meters, parts);
    const names = namesOf(config.broker.prefix);
    addPartsProbes(readiness, parts, names);
    const abort = new AbortController();
    const common = { ...parts, log, deliveriesQueue: names.deliveries, signal: abort.signal };
    const reconciler = createReconciler({
      ...common,
      graceMs: config.reconciler.graceMs,
      timeoutMs: config.egress.timeoutMs,
    });

    const loop = (name: string, pauseMs: number, pass: LoopPass): void => {
      const measured = measureLoop(meters, name, pass);
      const onEpisode = (episode: Episode): void =>
        episode.kind === 'begins'
          ? log.fault(`${name}_failed`, episode.error)
          : log.info(`${name}_resumed`, { failures: episode.failures });
      scope.onStop(startLoop({ pass: measured, pauseMs, onEpisode }));
    };
    const counts = {
      fed: meters.counter('duepost_fed_total'),
      hits: meters.counter('duepost_reconciler_hits_total'),
      notices: meters.counter('duepost_notices_published_total'),
      atRisk: meters.counter('duepost_at_risk_total'),
    };
    const missed = createMissMeter(meters);
    const riskWatch = createRiskWatch({
      ...common,
      graceMs: config.reconciler.graceMs,
      timeoutMs: config.egress.timeoutMs,
      horizonMs: config.horizonMs,
      onFlagged: (reason) => counts.atRisk([reason]),
    });
    const observer = createObserver({ ...parts, names, meters });
    loop('feed', config.feeder.intervalMs, async () => {
      const report = await feed({ ...common, horizonMs: config.horizonMs });
      if (report === undefined) return undefined;
      counts.fed([], report.published);
      if (report.published > 0) log.info('fed', { published: report.published, throttled: report.throttled });
      if (report.throttled) await pause(THROTTLED_PAUSE_MS, abort.signal);
      return { again: report.throttled };
    });
    loop('reconcile', config.reconciler.intervalMs, async () => {
      const reconciled = await reconciler.reconcile();
      if (reconciled === undefined) return undefined;
      const { failure, again, ...report } = reconciled;
      counts.hits(['silent'], report.announced);
      counts.hits(['expired'], report.lapsed);
      missed(report.missed);
      if (Object.values(report).some((count) => count > 0)) log.warn('reconciled', report);
      if (failure !== undefined) throw failure;
      return { again };
    });
    const onPublished = (count: number): void => counts.notices([], count);
    const toldPeople = new Set<string>();
    loop('notify', NOTICE_INTERVAL_MS, () => notify({ ...parts, names, toldPeople, onPublished }));
    loop('at_risk', config.reconciler.intervalMs, () => riskWatch.watch());
    loop('observe', config.reconciler.intervalMs, async () => {
      await observer.observe();
      return { again: false };
    });
    loop('partitions', PARTITION_INTERVAL_MS, async () => {
      const made = await ensurePartitions(parts.pool);
      if (made > 0) log.info('partitions_made', { made });
      return { again: false };
    });
    startEvidenceLoops(loop, { pool: parts.pool, config, log, signal: abort.signal, meters });
    scope.onStop(() => abort.abort());
    log.info('reconciler_started', { horizon_ms: config.horizonMs });
  });
}
