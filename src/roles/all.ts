import type { Config } from '../runtime/config.ts';
import type { Log } from '../runtime/log.ts';
import { inScope, type Stop } from '../runtime/scope.ts';
import { startIngress } from './ingress.ts';
import { startReconciler } from './reconciler.ts';
import { startWorker } from './worker.ts';

export const ROLES = ['api', 'ingress', 'worker', 'reconciler'] as const;
export type Role = (typeof ROLES)[number];

/** Starts the roles of one process; stops all when one cannot start. */
export function startRoles(roles: readonly Role[], config: Config, log: Log): Promise<Stop> {
  return inScope(async (scope) => {
    if (roles.includes('reconciler')) scope.onStop(await startReconciler(config, log));
    if (roles.includes('worker')) scope.onStop(await startWorker(config, log));
    if (roles.includes('ingress')) scope.onStop(await startIngress(config, log));
  });
}
