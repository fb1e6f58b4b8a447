import { startRoles } from '../../src/roles/all.ts';
import type { Role } from '../../src/roles/role.ts';
import type { Config } from '../../src/runtime/config.ts';
import { recordLog } from '../support/recorded-log.ts';
import { parseExposition, type Sample } from './exposition.ts';

/** A role that is scraped over HTTP, as if it were a process of its own. */
export interface WatchedRole {
  /** What a scrape gives: every sample, with the labels that Prometheus would add. */
  scrape(): Promise<Sample[]>;
  stop(): Promise<void>;
}

/** Starts a role with telemetry and an HTTP server of its own. */
export async function watchRole(role: Role, config: Config): Promise<WatchedRole> {
  const running = await startRoles([role], config, recordLog().log);
  return {
    async scrape() {
      const response = await fetch(new URL('/metrics', running.httpUrl));
      if (!response.ok) throw new Error(`/metrics answered ${response.status}`);
      return parseExposition(await response.text(), { job: 'duepost', instance: role });
    },
    stop: () => running(),
  };
}
