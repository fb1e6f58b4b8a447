import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { type BrokerConfig, withConnection } from '../../src/broker/connection.ts';
import { type Consumer, type ConsumerOptions, startConsumer } from '../../src/broker/consumer.ts';
import { connectPublisher, type Publisher } from '../../src/broker/publisher.ts';
import { type Names, namesOf } from '../../src/broker/topology.ts';
import { openTestBroker, type TestBroker, targetOf, throughPort } from './broker.ts';
import { type Proxy, startProxy } from './proxy.ts';
import { recordLog } from './recorded-log.ts';

/** Waiting for something that has no set time. */
export const PATIENT = { timeout: 30_000, interval: 20 };

/** What tests of consumers stand on: a broker, a proxy that consumers go through, a publisher that does not. */
export interface Consuming {
  readonly config: BrokerConfig;
  readonly names: Names;
  readonly proxy: Proxy;
  readonly publisher: Publisher;
  /** Starts a consumer of `deliveries` that is stopped after the test. */
  start(
    options: Partial<ConsumerOptions> & Pick<ConsumerOptions, 'handle'>,
    changes?: Partial<BrokerConfig>,
  ): Promise<Consumer>;
  /** Publishes bodies as due wake-ups. */
  put(...bodies: (string | Buffer)[]): Promise<void>;
  /** Ready messages: what a stopped consumer acknowledged never shows up here again. */
  countLeft(queue: string): Promise<number>;
}

/** Sets all of it up around the tests of a file. */
export function setUpConsuming(): Consuming {
  const started: Consumer[] = [];
  let broker: TestBroker;
  let proxy: Proxy;
  let publisher: Publisher;

  beforeAll(async () => {
    broker = await openTestBroker();
    proxy = await startProxy(targetOf(broker.config));
  });
  beforeEach(async () => {
    publisher = await connectPublisher(broker.config, recordLog().log);
  });
  afterEach(async () => {
    proxy.freeze(false);
    await Promise.all(started.splice(0).map((consumer) => consumer.stop()));
    await publisher.close();
    const names = namesOf(broker.config.prefix);
    await withConnection(broker.config, 'test', async (connection) => {
      const channel = await connection.createChannel();
      for (const queue of [names.deliveries, names.poison]) await channel.purgeQueue(queue);
    });
  });
  afterAll(async () => {
    await proxy.close();
    await broker.close();
  });

  return {
    get config() {
      return broker.config;
    },
    get names() {
      return namesOf(broker.config.prefix);
    },
    get proxy() {
      return proxy;
    },
    get publisher() {
      return publisher;
    },
    async start(options, changes = {}) {
      const consumer = await startConsumer({
        config: { ...throughPort(broker.config, proxy.port), ...changes },
        log: recordLog().log,
        queue: namesOf(broker.config.prefix).deliveries,
        prefetch: 10,
        ...options,
      });
      started.push(consumer);
      return consumer;
    },
    async put(...bodies) {
      const exchange = namesOf(broker.config.prefix).wake;
      await Promise.all(
        bodies.map((body) => publisher.publish({ exchange, routingKey: 'now', body: Buffer.from(body) })),
      );
    },
    countLeft: async (queue) => (await publisher.countReady(queue)) ?? -1,
  };
}

/** A promise to be resolved from outside. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** `count` different bodies. */
export function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, id) => String(id));
}
