import { type Topology, topologyOf } from './topology.ts';

/**
 * The topology as a broker loads it at its start: no users, no versions.
 *
 * The virtual host is part of it, because a blank node without that section boots with nothing at all.
 */
export function exportDefinitions(prefix: string, vhost = '/'): object {
  const topology: Topology = topologyOf(prefix);
  return {
    vhosts: [{ name: vhost }],
    exchanges: topology.exchanges.map((exchange) => ({
      name: exchange.name,
      vhost,
      type: exchange.type,
      durable: true,
      auto_delete: false,
      internal: false,
      arguments: exchange.arguments,
    })),
    queues: topology.queues.map((queue) => ({
      name: queue.name,
      vhost,
      durable: true,
      auto_delete: false,
      arguments: queue.arguments,
    })),
    bindings: topology.bindings.map((binding) => ({
      source: binding.source,
      vhost,
      destination: binding.destination,
      destination_type: 'queue',
      routing_key: binding.routingKey,
      arguments: {},
    })),
    policies: topology.policies.map((policy) => ({
      vhost,
      name: policy.name,
      pattern: policy.pattern,
      'apply-to': 'queues',
      definition: policy.definition,
      priority: 0,
    })),
  };
}

/** The text of `definitions.json`. */
export function formatDefinitions(prefix: string): string {
  return `${JSON.stringify(exportDefinitions(prefix), null, 2)}\n`;
}
