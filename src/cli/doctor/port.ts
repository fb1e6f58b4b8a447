import { requireFreePort } from '../../http/port.ts';
import type { Config } from '../../runtime/config.ts';
import { reasonOf } from '../../runtime/outage.ts';
import { type Finding, ok, wrong } from './finding.ts';

const PATIENCE_MS = 2_000;

/** Whether a process could listen; one of ours that does so already is nothing wrong. */
export async function checkPort({ http }: Pick<Config, 'http'>): Promise<Finding> {
  const check = 'http port';
  const where = `port ${http.port} of ${http.host}`;
  try {
    await requireFreePort(http);
    return ok(check, http.port === 0 ? 'any that is free' : `${where} is free`);
  } catch (error) {
    if (await answersAsOurs(http)) return ok(check, `a process of duepost listens at ${where}`);
    const [what = '', mend = ''] = reasonOf(error).split(': ');
    return wrong(check, what, mend === '' ? 'see DUEPOST_HTTP_HOST and DUEPOST_HTTP_PORT' : mend);
  }
}

async function answersAsOurs({ host, port }: Config['http']): Promise<boolean> {
  const at = host.includes(':') ? `[${host}]` : host;
  try {
    const response = await fetch(`http://${at}:${port}/readyz`, { signal: AbortSignal.timeout(PATIENCE_MS) });
    return Object.hasOwn((await response.json()) as object, 'checks');
  } catch {
    return false;
  }
}
