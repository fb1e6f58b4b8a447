import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { withConnection } from '../../src/broker/connection.ts';
import { exportDefinitions, formatDefinitions } from '../../src/broker/definitions.ts';
import { namesOf, topologyOf } from '../../src/broker/topology.ts';
import { applyTopology } from '../../src/broker/topology-apply.ts';
import { checkTopology } from '../../src/broker/topology-check.ts';
import { openTestBroker, type TestBroker } from '../support/broker.ts';
import { recordLog } from '../support/recorded-log.ts';

describe('the topology', () => {
  it('is what definitions.json says', async () => {
    const committed = await readFile(new URL('../../definitions.json', import.meta.url), 'utf8');
    expect(committed).toBe(formatDefinitions('duepost'));
  });

  it('has the names of the contract', () => {
    expect(namesOf('duepost')).toMatchObject({
      commands: 'duepost.commands',
      commandsQueue: 'duepost.v1.commands',
      commandsRejected: 'duepost.v1.commands.rejected',
      wake: 'duepost.v1.wake',
      due: 'duepost.v1.due',
      deliveries: 'duepost.v1.deliveries',
      poison: 'duepost.v1.poison',
      unrouted: 'duepost.v1.unrouted',
      deadLetters: 'duepost.v1.dead-letters',
      notifications: 'duepost.notifications',
    });
    const { tiers } = namesOf('duepost');
    expect([tiers.length, tiers[0], tiers.at(-1)]).toEqual([
      12,
      'duepost.v1.delay.t0001',
      'duepost.v1.delay.t2048',
    ]);
  });

  it('never lets a queue drop anything, and runs on every broker from 3.10 on', () => {
    for (const queue of topologyOf('duepost').queues) {
      expect(queue.arguments, queue.name).toMatchObject({
        'x-queue-type': 'quorum',
        'x-overflow': 'reject-publish',
      });
      expect(Object.keys(queue.arguments)).not.toContain('x-queue-mode');
      expect(Object.keys(queue.arguments)).not.toContain('x-queue-version');
    }
  });

  it('holds each wake-up in its tier for as long as the tier says', () => {
    const { queues, names } = topologyOf('duepost');
    const ttls = names.tiers.map(
      (name) => queues.find((queue) => queue.name === name)?.arguments['x-message-ttl'],
    );
    expect(ttls).toEqual(
      [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048].map((seconds) => seconds * 1000),
    );
  });

  it('gives everything that is worked on a place for what kills its consumer', () => {
    const { queues, names } = topologyOf('duepost');
    const kept = new Set([names.commandsRejected, names.poison, names.unrouted, names.deadLetters]);
    for (const queue of queues.filter(({ name }) => !kept.has(name))) {
      expect(queue.arguments, queue.name).toMatchObject({ 'x-dead-letter-strategy': 'at-least-once' });
      expect(queue.arguments).toHaveProperty('x-dead-letter-exchange');
    }
  });

  it('names no user and no version, but the virtual host', () => {
    expect(Object.keys(exportDefinitions('duepost')).sort()).toEqual([
      'bindings',
      'exchanges',
      'policies',
      'queues',
      'vhosts',
    ]);
    expect(exportDefinitions('duepost', 'my/vhost')).toMatchObject({ vhosts: [{ name: 'my/vhost' }] });
  });

  it('limits the tiers of its own prefix only', () => {
    const pattern = new RegExp(topologyOf('a.b').policies[0]?.pattern ?? '');
    expect(pattern.test('a.b.v1.delay.t0001')).toBe(true);
    expect(pattern.test('axb.v1.delay.t0001')).toBe(false);
    expect(pattern.test('a.b.v1.deliveries')).toBe(false);
  });
});

describe('the topology on a broker', () => {
  let broker: TestBroker;
  const change = (work: Parameters<typeof withConnection<void>>[2]): Promise<void> =>
    withConnection(broker.config, 'test', work);
  const checkByAmqp = (): Promise<string[]> => {
    const { managementUrl: _, ...config } = broker.config;
    return checkTopology(config);
  };

  beforeEach(async () => {
    broker = await openTestBroker();
  });
  afterEach(() => broker.close());

  it('is all well when it was just applied, and applying it again changes nothing', async () => {
    expect(await checkTopology(broker.config)).toEqual([]);
    expect(await applyTopology(broker.config, recordLog().log)).toEqual([]);
    expect(await checkByAmqp()).toEqual([]);
  });

  it('is reported and mended when a queue is missing', async () => {
    const { deliveries } = namesOf(broker.config.prefix);
    await change(async (connection) => {
      await (await connection.createChannel()).deleteQueue(deliveries);
    });
    expect(await checkByAmqp()).toEqual([`queue ${deliveries} is missing`]);
    expect(await checkTopology(broker.config)).toContain(`queue ${deliveries} is missing`);
    await applyTopology(broker.config, recordLog().log);
    expect(await checkTopology(broker.config)).toEqual([]);
  });

  it('is reported by apply and by check when a queue has other arguments', async () => {
    const { poison } = namesOf(broker.config.prefix);
    await change(async (connection) => {
      const channel = await connection.createChannel();
      await channel.deleteQueue(poison);
      await channel.assertQueue(poison, { arguments: { 'x-queue-type': 'quorum', 'x-max-length': 5 } });
      await channel.bindQueue(poison, poison, '');
    });
    for (const problems of [
      await applyTopology(broker.config, recordLog().log),
      await checkByAmqp(),
      await checkTopology(broker.config),
    ]) {
      expect(problems.length).toBeGreaterThan(0);
      expect(problems.every((problem) => problem.startsWith(`queue ${poison}: `))).toBe(true);
      expect(problems.join()).toMatch(/x-overflow|x-max-length/);
    }
  });

  it('is reported when an exchange has another type', async () => {
    const { notifications } = namesOf(broker.config.prefix);
    await change(async (connection) => {
      const channel = await connection.createChannel();
      await channel.deleteExchange(notifications);
      await channel.assertExchange(notifications, 'fanout');
    });
    expect(await checkByAmqp()).toEqual([
      expect.stringMatching(new RegExp(`exchange ${notifications}: .*type`)),
    ]);
    expect(await checkTopology(broker.config)).toEqual([
      expect.stringContaining(`exchange ${notifications}: `),
    ]);
  });

  it.each([
    ['wake', 'deliveries', 'now'],
    ['wake', 'delay.t0001', 't0001'],
    ['due', 'deliveries', 'wake'],
  ])(
    'is found wanting by a canary when wake-ups no longer go from %s to %s',
    async (exchange, queue, routingKey) => {
      const source = `${broker.config.prefix}.v1.${exchange}`;
      const destination = `${broker.config.prefix}.v1.${queue}`;
      await change(async (connection) => {
        await (await connection.createChannel()).unbindQueue(destination, source, routingKey);
      });
      expect(await checkByAmqp()).toEqual([`binding ${source} → ${destination} is missing`]);
      await applyTopology(broker.config, recordLog().log);
      expect(await checkByAmqp()).toEqual([]);
    },
  );
});

describe('the check through the management API', () => {
  const topology = topologyOf('duepost');
  const servers: Server[] = [];

  /** Answers as RabbitMQ 3.10 does for a topology that was loaded from definitions.json. */
  async function serve(
    change: (answers: Record<string, Record<string, unknown>[]>) => void,
  ): Promise<string> {
    const { vhosts: _, ...loaded } = JSON.parse(formatDefinitions('duepost')) as Record<
      string,
      Record<string, unknown>[]
    >;
    const queues = loaded['queues']?.map((queue) => ({ ...queue, type: 'quorum', exclusive: false })) ?? [];
    const defaults = queues.map((queue) => ({
      source: '',
      destination: (queue as { name?: unknown }).name,
      routing_key: 'x',
    }));
    const answers = { ...loaded, queues, bindings: [...defaults, ...(loaded['bindings'] ?? [])] };
    change(answers);
    const server = createServer((request, response) => {
      const kind = /^\/api\/(\w+)\/my%2Fvhost$/.exec(request.url ?? '')?.[1] ?? '';
      const isAllowed = request.headers.authorization === `Basic ${Buffer.from('u:p@ss').toString('base64')}`;
      response.writeHead(isAllowed ? 200 : 401).end(JSON.stringify(answers[kind as keyof typeof answers]));
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  }

  const check = (managementUrl: string, user = 'u:p%40ss'): Promise<string[]> =>
    checkTopology({
      url: `amqp://${user}@127.0.0.1:1/my%2Fvhost`,
      managementUrl,
      prefix: 'duepost',
      heartbeatSeconds: 10,
      confirmTimeoutMs: 1000,
      maxUnconfirmed: 1,
    });

  afterEach(async () => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  });

  it('finds nothing where nothing differs', async () => {
    expect(await check(await serve(() => {}))).toEqual([]);
  });

  it('leaves a policy alone that somebody put above the one of the ladder', async () => {
    const url = await serve((answers) => {
      answers['policies']?.push({
        name: 'duepost-delay-larger',
        pattern: '^duepost\\.v1\\.delay\\.',
        'apply-to': 'queues',
        priority: 10,
        definition: { 'max-length': 3_000_000 },
      });
    });
    expect(await check(url)).toEqual([]);
  });

  it('names each object and argument that differs', async () => {
    const { names } = topology;
    const url = await serve((answers) => {
      const find = (kind: string, name: string): Record<string, unknown> =>
        answers[kind]?.find((object) => object['name'] === name) ?? {};
      Object.assign(find('queues', names.tiers[3] ?? ''), { type: 'classic' });
      Object.assign(find('queues', names.deliveries)['arguments'] as object, {
        'x-delivery-limit': 5,
        'x-single-active-consumer': true,
      });
      Object.assign(find('exchanges', names.due), { arguments: {} });
      Object.assign(find('policies', 'duepost-delay'), { definition: { 'max-length': 10 } });
      answers['exchanges'] = answers['exchanges']?.filter(({ name }) => name !== names.poison) ?? [];
      answers['bindings'] = answers['bindings']?.filter(({ source }) => source !== names.commands) ?? [];
      answers['bindings'].push({
        source: names.notifications,
        destination: names.deliveries,
        routing_key: '#',
      });
      answers['bindings'].push({
        source: names.notifications,
        destination: 'someone.else',
        routing_key: '#',
      });
    });
    expect(await check(url)).toEqual([
      'exchange duepost.v1.poison is missing',
      'exchange duepost.v1.due: alternate-exchange is absent, expected "duepost.v1.unrouted"',
      'queue duepost.v1.deliveries: x-delivery-limit is 5, expected 20',
      'queue duepost.v1.deliveries: x-single-active-consumer is true, expected absent',
      'queue duepost.v1.delay.t0008: type is "classic", expected "quorum"',
      'policy duepost-delay: max-length is 10, expected 1000000',
      'binding duepost.commands → duepost.v1.commands with the key "#" is missing',
      'binding duepost.notifications → duepost.v1.deliveries with the key "#" is not ours',
    ]);
  });

  it('says so when it may not look, without the password', async () => {
    const url = await serve(() => {});
    const failure: unknown = await check(url, 'u:wr%40ng').catch((error: unknown) => error);
    expect(String(failure)).toMatch(/management API answered 401/);
    expect(String(failure)).not.toMatch(/wr(%40|@)ng/);
  });
});
