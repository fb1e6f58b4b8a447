import { randomBytes } from 'node:crypto';
import type { BrokerConfig } from '../../src/broker/connection.ts';
import { withConnection } from '../../src/broker/connection.ts';
import { createManagement } from '../../src/broker/management.ts';
import { topologyOf } from '../../src/broker/topology.ts';
import { applyTopology } from '../../src/broker/topology-apply.ts';
import { recordLog } from './recorded-log.ts';

/** Objects of a prefix of their own on the broker of the test run. */
export interface TestBroker {
  readonly config: BrokerConfig;
  /** Deletes every object of the prefix. */
  close(): Promise<void>;
}

/** How to reach the broker of the test run under a prefix of its own; nothing is declared. */
export function testBrokerConfig(changes: Partial<BrokerConfig> = {}): BrokerConfig {
  const managementUrl = process.env['DUEPOST_MANAGEMENT_URL'] ?? '';
  return {
    url: process.env['DUEPOST_AMQP_URL'] ?? '',
    ...(managementUrl === '' ? {} : { managementUrl }),
    prefix: `t${randomBytes(6).toString('hex')}`,
    heartbeatSeconds: 10,
    confirmTimeoutMs: 15_000,
    maxUnconfirmed: 500,
    ...changes,
  };
}

/** Declares the topology under a prefix of its own. */
export async function openTestBroker(changes: Partial<BrokerConfig> = {}): Promise<TestBroker> {
  const config = testBrokerConfig(changes);
  const problems = await applyTopology(config, recordLog().log);
  if (problems.length > 0) throw new Error(problems.join('\n'));
  return { config, close: () => deleteTopology(config) };
}

/** The same configuration, reaching the broker through a proxy. */
export function throughPort(config: BrokerConfig, port: number): BrokerConfig {
  const url = new URL(config.url);
  url.hostname = '127.0.0.1';
  url.port = String(port);
  return { ...config, url: url.href };
}

/** Where the broker listens, for a proxy in front of it. */
export function targetOf(config: BrokerConfig): { targetPort: number; targetHost: string } {
  const url = new URL(config.url);
  return { targetPort: Number(url.port) || 5672, targetHost: url.hostname };
}

async function deleteTopology(config: BrokerConfig): Promise<void> {
  const topology = topologyOf(config.prefix);
  await withConnection(config, 'test', async (connection) => {
    const channel = await connection.createChannel();
    for (const { name } of topology.queues) await channel.deleteQueue(name);
    for (const { name } of topology.exchanges) await channel.deleteExchange(name);
    await channel.close();
  });
  const management = createManagement(config);
  for (const { name } of topology.policies) await management?.deletePolicy(name).catch(() => undefined);
}
