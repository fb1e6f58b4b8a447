import { requireFreePort } from '../http/port.ts';
import type { Config } from '../runtime/config.ts';
import type { Log } from '../runtime/log.ts';
import { inScope, type Stop } from '../runtime/scope.ts';
import { openTelemetry } from '../runtime/telemetry.ts';
import { startHttp } from './api.ts';
import { startIngress } from './ingress.ts';
import type { Shared } from './parts.ts';
import { createReadiness, watchReadiness } from './readiness.ts';
import { startReconciler } from './reconciler.ts';
import type { Role } from './role.ts';
import { startWorker } from './worker.ts';

/** The roles of a process at work; calling it stops them. */
export interface Running extends Stop {
  /** Where the process serves HTTP: health and metrics, and the API if that is among its roles. */
  readonly httpUrl: string;
}

/** Starts the roles of one process; stops all when one cannot start. */
export async function startRoles(roles: readonly Role[], config: Config, log: Log): Promise<Running> {
  // Other things take seconds to open, and would have to be closed again.
  await requireFreePort(config.http);
  let httpUrl = '';
  const stop = await inScope(async (scope) => {
    const telemetry = scope.own(openTelemetry(config.telemetry, log), (t) => t.close());
    const shared: Shared = {
      meters: telemetry.meters,
      traces: telemetry.traces,
      readiness: createReadiness(config),
    };
    const stops: Stop[] = [];
    scope.onStop(() => stopAll(stops));
    if (roles.includes('reconciler')) stops.push(await startReconciler(config, log, shared));
    if (roles.includes('worker')) stops.push(await startWorker(config, log, shared));
    if (roles.includes('ingress')) stops.push(await startIngress(config, log, shared));
    const http = await startHttp(config, log, {
      ...shared,
      isApi: roles.includes('api'),
      metrics: telemetry.metricsText,
    });
    stops.push(http.stop);
    httpUrl = http.url;
    scope.onStop(watchReadiness(shared.readiness, log));
  });
  return Object.assign(stop, { httpUrl });
}

/** All at once: the grace is the process's, and a role that waits for another would hand back too late. */
async function stopAll(stops: readonly Stop[]): Promise<void> {
  const results = await Promise.allSettled(stops.map((stop) => stop()));
  const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
  if (failures.length > 0) throw new AggregateError(failures, 'some roles could not be stopped');
}
