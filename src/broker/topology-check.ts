import { checkByPassing } from './check-passively.ts';
import type { BrokerConfig } from './connection.ts';
import { createManagement, type Management, ManagementUnreachable } from './management.ts';
import { type BindingSpec, type Topology, topologyOf } from './topology.ts';

type Found = Readonly<Record<string, unknown>>;

/**
 * Compares the broker with the topology and changes nothing.
 *
 * Everything is compared through the management API where it is configured and answers. Elsewhere objects are looked
 * at one by one, as far as permissions allow, and a canary is sent through the shortest tier.
 *
 * @returns one sentence for each object that differs; empty when all is well
 */
export async function checkTopology(config: BrokerConfig): Promise<string[]> {
  const topology = topologyOf(config.prefix);
  const management = createManagement(config);
  if (management === undefined) return checkByPassing(config, topology);
  try {
    return await compare(management, topology);
  } catch (error) {
    if (error instanceof ManagementUnreachable) return checkByPassing(config, topology);
    throw error;
  }
}

async function compare(management: Management, topology: Topology): Promise<string[]> {
  const [exchanges, queues, bindings, policies] = await Promise.all([
    management.list('exchanges'),
    management.list('queues'),
    management.list('bindings'),
    management.list('policies'),
  ]);
  const fixed = { durable: true, auto_delete: false };
  return [
    ...topology.exchanges.flatMap(({ name, type, arguments: args }) =>
      differences(`exchange ${name}`, named(exchanges, name), {
        type,
        ...fixed,
        internal: false,
        arguments: args,
      }),
    ),
    ...topology.queues.flatMap(({ name, arguments: args }) =>
      differences(`queue ${name}`, named(queues, name), { type: 'quorum', ...fixed, arguments: args }),
    ),
    ...topology.policies.flatMap(({ name, pattern, definition }) =>
      differences(`policy ${name}`, named(policies, name), { pattern, 'apply-to': 'queues', definition }),
    ),
    ...compareBindings(bindings, topology),
  ];
}

function named(objects: readonly Found[], name: string): Found | undefined {
  return objects.find((object) => object.name === name);
}

/** `arguments` and `definition` are compared name by name. */
function differences(what: string, found: Found | undefined, expected: Found): string[] {
  if (found === undefined) return [`${what} is missing`];
  return Object.entries(expected).flatMap(([name, value]) => {
    if (typeof value === 'object' && value !== null) {
      return differingEntries(`${what}:`, asRecord(found[name]), asRecord(value));
    }
    return found[name] === value ? [] : [`${what}: ${name} is ${show(found[name])}, expected ${show(value)}`];
  });
}

function differingEntries(what: string, found: Found, expected: Found): string[] {
  const names = new Set([...Object.keys(expected), ...Object.keys(found)]);
  return [...names]
    .filter((name) => found[name] !== expected[name])
    .map((name) => `${what} ${name} is ${show(found[name])}, expected ${show(expected[name])}`);
}

/** Other services bind to our topic exchanges as they like; what reaches our queues is ours alone. */
function compareBindings(found: readonly Found[], topology: Topology): string[] {
  const ours = new Set(topology.queues.map((queue) => queue.name));
  const wanted = new Map(topology.bindings.map((binding) => [describe(binding), binding]));
  const seen = found
    .filter(({ source, destination }) => source !== '' && ours.has(String(destination)))
    .map(({ source, destination, routing_key: key }) =>
      describe({ source: String(source), destination: String(destination), routingKey: String(key) }),
    );
  return [
    ...[...wanted.keys()]
      .filter((binding) => !seen.includes(binding))
      .map((binding) => `${binding} is missing`),
    ...seen.filter((binding) => !wanted.has(binding)).map((binding) => `${binding} is not ours`),
  ];
}

function describe({ source, destination, routingKey }: BindingSpec): string {
  return `binding ${source} → ${destination} with the key ${JSON.stringify(routingKey)}`;
}

function asRecord(value: unknown): Found {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function show(value: unknown): string {
  return value === undefined ? 'absent' : JSON.stringify(value);
}
