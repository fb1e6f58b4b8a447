import { parseBrokerUrl } from './broker-url.ts';
import type { BrokerConfig } from './connection.ts';

/** RabbitMQ's management API, for one virtual host. */
export interface Management {
  /** Lists the objects of a kind. Throws ManagementUnreachable, or an Error with the status of a refusal. */
  list(kind: 'exchanges' | 'queues' | 'bindings' | 'policies'): Promise<readonly Record<string, unknown>[]>;
  putPolicy(name: string, policy: object): Promise<void>;
  deletePolicy(name: string): Promise<void>;
}

/** Nobody answers there, which is normal where the plugin is off. */
export class ManagementUnreachable extends Error {}

const TIMEOUT_MS = 10_000;

/** Undefined when no management URL is configured. Without a user of its own the one of the broker URL is used. */
export function createManagement(config: BrokerConfig): Management | undefined {
  if (config.managementUrl === undefined) return undefined;
  const broker = parseBrokerUrl(config.url);
  const url = URL.canParse(config.managementUrl) ? new URL(config.managementUrl) : undefined;
  if (url === undefined) throw new Error('the management URL is not a URL');
  const username = url.username === '' ? broker.username : decodeURIComponent(url.username);
  const password = url.username === '' ? broker.password : decodeURIComponent(url.password);
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  const base = `${url.origin}${url.pathname.replace(/\/$/, '')}/api`;
  const vhost = encodeURIComponent(broker.vhost);

  async function call(method: string, path: string, body?: object): Promise<Response> {
    const response = await fetch(`${base}/${path}`, {
      method,
      headers: { authorization, 'content-type': 'application/json' },
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }).catch((cause: unknown) => {
      throw new ManagementUnreachable('the management API does not answer', { cause });
    });
    if (response.ok) return response;
    await response.body?.cancel();
    throw new Error(`the management API answered ${response.status} to ${method} /api/${path}`);
  }

  const policyPath = (name: string): string => `policies/${vhost}/${encodeURIComponent(name)}`;
  return {
    async list(kind) {
      return (await (await call('GET', `${kind}/${vhost}`)).json()) as Record<string, unknown>[];
    },
    async putPolicy(name, policy) {
      await call('PUT', policyPath(name), policy);
    },
    async deletePolicy(name) {
      await call('DELETE', policyPath(name));
    },
  };
}
