import { sendCanaries } from './canary.ts';
import { type BrokerConfig, withConnection } from './connection.ts';
import { createOperations, type Operations } from './operations.ts';
import type { Topology } from './topology.ts';

const NO_PERMISSION = 403;
const NOT_THERE = 404;

/** Checks over AMQP alone: arguments as far as the broker tells, and the way of a wake-up by sending one. */
export function checkByPassing(config: BrokerConfig, topology: Topology): Promise<string[]> {
  return withConnection(config, 'topology check', async (connection) => {
    const problems = await checkObjects(createOperations(connection), topology);
    // With an object missing or different the canaries would only say so again.
    return problems.length > 0 ? problems : sendCanaries(connection, topology.names, config.confirmTimeoutMs);
  });
}

async function checkObjects(operations: Operations, topology: Topology): Promise<string[]> {
  const problems: string[] = [];
  for (const { name, type, arguments: args } of topology.exchanges) {
    const refused =
      (await operations.attempt((channel) => channel.checkExchange(name))) ??
      (await operations.attempt((channel) => channel.assertExchange(name, type, { arguments: args })));
    problems.push(...explain(`exchange ${name}`, refused));
  }
  for (const { name, arguments: args } of topology.queues) {
    const refused =
      (await operations.attempt((channel) => channel.checkQueue(name))) ??
      // Declaring what is there changes nothing and is the only way to have its arguments compared.
      (await operations.attempt((channel) => channel.assertQueue(name, { arguments: args })));
    problems.push(...explain(`queue ${name}`, refused));
  }
  return problems;
}

function explain(what: string, refused: { code: number; text: string } | undefined): string[] {
  if (refused === undefined || refused.code === NO_PERMISSION) return [];
  return [refused.code === NOT_THERE ? `${what} is missing` : `${what}: ${refused.text}`];
}
