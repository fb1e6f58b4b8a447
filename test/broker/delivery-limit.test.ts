import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createManagement } from '../../src/broker/management.ts';
import { namesOf, topologyOf } from '../../src/broker/topology.ts';
import { openTestBroker, type TestBroker } from '../support/broker.ts';
import { PATIENT } from '../support/consuming.ts';

let broker: TestBroker;

beforeAll(async () => {
  broker = await openTestBroker();
});

afterAll(() => broker.close());

test('people may look at all that was set aside as often as they like, and nothing else comes back without end', () => {
  const { policies, queues } = topologyOf('a.b');
  const pattern = new RegExp(policies.find(({ name }) => name === 'a.b-set-aside')?.pattern ?? '');
  expect(queues.map(({ name }) => name).filter((name) => pattern.test(name))).toEqual([
    'a.b.v1.commands.rejected',
    'a.b.v1.poison',
    'a.b.v1.unrouted',
    'a.b.v1.dead-letters',
  ]);
  expect(pattern.test('axb.v1.poison')).toBe(false);
});

test('how often a message may be taken and given back is left to no default of the broker', async () => {
  const { config } = broker;
  const { tiers } = namesOf(config.prefix);
  const queues = topologyOf(config.prefix).queues.filter(({ name }) => !tiers.includes(name));
  const limits = async (): Promise<unknown[]> => {
    const found = (await createManagement(config)?.list('queues')) ?? [];
    return queues.map(({ name, arguments: args }) => {
      const queue = found.find((other) => other['name'] === name);
      const policy = queue?.['effective_policy_definition'] as Record<string, unknown> | undefined;
      return args['x-delivery-limit'] ?? policy?.['delivery-limit'];
    });
  };
  // The management API tells what is in force some seconds late.
  const expected = [...Array(4).fill(1_000_000), 20, 20];
  await vi.waitFor(async () => expect(await limits()).toEqual(expected), PATIENT);
});
