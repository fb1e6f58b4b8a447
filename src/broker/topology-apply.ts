import type { Log } from '../runtime/log.ts';
import { type BrokerConfig, withConnection } from './connection.ts';
import { createManagement, ManagementUnreachable } from './management.ts';
import { createOperations, type Operations } from './operations.ts';
import { type Topology, topologyOf } from './topology.ts';

/**
 * Makes what is missing; harmless when all is there.
 *
 * Policies need the management API; without it they are left out and the log says so.
 *
 * @returns one sentence for each object that could not be made, usually because it is there with other arguments,
 *   which cannot be changed
 */
export async function applyTopology(config: BrokerConfig, log: Log): Promise<string[]> {
  const topology = topologyOf(config.prefix);
  const problems = await withConnection(config, 'topology', (connection) =>
    declareAll(createOperations(connection), topology),
  );
  await applyPolicies(config, topology, log);
  log.info('topology.applied', { prefix: config.prefix, problems: problems.length });
  return problems;
}

async function declareAll(operations: Operations, topology: Topology): Promise<string[]> {
  const problems: string[] = [];
  const note = (what: string, refused: { text: string } | undefined): void => {
    if (refused !== undefined) problems.push(`${what}: ${refused.text}`);
  };
  for (const { name, type, arguments: args } of topology.exchanges) {
    note(
      `exchange ${name}`,
      await operations.attempt((channel) => channel.assertExchange(name, type, { arguments: args })),
    );
  }
  for (const { name, arguments: args } of topology.queues) {
    note(
      `queue ${name}`,
      await operations.attempt((channel) => channel.assertQueue(name, { arguments: args })),
    );
  }
  for (const { source, destination, routingKey } of topology.bindings) {
    note(
      `binding ${source} → ${destination} (${routingKey})`,
      await operations.attempt((channel) => channel.bindQueue(destination, source, routingKey)),
    );
  }
  return problems;
}

async function applyPolicies(config: BrokerConfig, topology: Topology, log: Log): Promise<void> {
  const management = createManagement(config);
  try {
    if (management === undefined) throw new ManagementUnreachable('no management URL is configured');
    for (const { name, pattern, definition } of topology.policies) {
      await management.putPolicy(name, { pattern, definition, 'apply-to': 'queues', priority: 0 });
    }
  } catch (error) {
    if (!(error instanceof ManagementUnreachable)) throw error;
    log.warn('topology.policies_left_out', { reason: error.message });
  }
}
