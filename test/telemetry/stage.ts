import { type PracticeReceiver, startPracticeReceiver } from '../../src/receiver/practice.ts';
import type { Config } from '../../src/runtime/config.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';
import { type Sample, valueOf } from './exposition.ts';
import type { Scrape } from './promql.ts';
import { type WatchedRole, watchRole } from './watched-product.ts';

type StagedRole = 'worker' | 'reconciler' | 'ingress';

/** The product, role by role, with a history of scrapes as Prometheus would have taken them. */
export interface Stage {
  readonly product: TestProduct;
  readonly receiver: PracticeReceiver;
  stopRole(role: StagedRole): Promise<void>;
  startRole(role: StagedRole, config?: Config): Promise<void>;
  scrape(): Promise<Sample[]>;
  /** Waits until a series of the scraped ones has such a value. */
  untilValue(
    name: string,
    labels: Readonly<Record<string, string>>,
    holds: (value: number) => boolean,
  ): Promise<void>;
  /** Sends an event to an endpoint; the answer of the practice receiver decides what comes of it. */
  send(
    endpoint: string,
    timing?: { readonly inMs?: number; readonly deadlineInMs?: number },
  ): Promise<string>;
  /** Creates an endpoint on the practice receiver, or where it is told. */
  createEndpoint(name: string, url?: string): Promise<string>;
  /** Scrapes once and lets that last for so many minutes; what is told to grow goes on as time does. */
  last(minutes: number, growing?: readonly string[]): Promise<void>;
  history(): readonly Scrape[];
  close(): Promise<void>;
}

const SCRAPE_SECONDS = 15;
/** About the machine that runs the test, not about the product. */
const OF_THE_MACHINE = ['duepost_event_loop_lag_seconds', 'duepost_database_pool_waiting'];

let lastKey = 0;

export async function openStage(env: Readonly<Record<string, string>> = {}): Promise<Stage> {
  const product = await openTestProduct({
    env: {
      DUEPOST_RECONCILER_INTERVAL_MS: '50',
      DUEPOST_RECONCILER_GRACE_MS: '300',
      DUEPOST_EGRESS_TIMEOUT_MS: '1000',
      ...env,
    },
  });
  const receiver = await startPracticeReceiver();
  const roles = new Map<StagedRole, WatchedRole>();
  const history: Scrape[] = [];

  async function scrape(): Promise<Sample[]> {
    return (await Promise.all([...roles.values()].map((role) => role.scrape()))).flat();
  }

  const stage: Stage = {
    product,
    receiver,
    async stopRole(role) {
      await roles.get(role)?.stop();
      roles.delete(role);
    },
    async startRole(role, config = product.config) {
      roles.set(role, await watchRole(role, config));
    },
    scrape,
    async untilValue(name, labels, holds) {
      await until(`${name} ${JSON.stringify(labels)}`, async () => {
        const value = valueOf(await scrape(), name, labels);
        return value !== undefined && holds(value);
      });
    },
    async send(endpoint, { inMs, deadlineInMs } = {}) {
      lastKey += 1;
      const { deliveries } = await product.events.publish({
        idempotencyKey: `staged-${lastKey}`,
        type: 'order.created',
        payload: {},
        endpoint,
        contractRef: undefined,
        deliverAt: inMs === undefined ? undefined : new Date(Date.now() + inMs),
        deadlineAt: deadlineInMs === undefined ? undefined : new Date(Date.now() + deadlineInMs),
        actor: 'test',
      });
      return deliveries[0]?.delivery_id ?? '';
    },
    async createEndpoint(name, url = receiver.url) {
      const policy = { kind: 'schedule', retry_schedule: [0, 1, 1, 3600], max_attempts: 8 };
      const { endpoint } = await product.endpoints.create({ name, url, policy }, { actor: 'test' });
      return endpoint.endpointId;
    },
    async last(minutes, growing = []) {
      const samples = (await scrape()).filter((s) => !OF_THE_MACHINE.includes(s.labels['__name__'] ?? ''));
      const startSeconds = (history.at(-1)?.atSeconds ?? 0) + SCRAPE_SECONDS;
      for (let passed = 0; passed <= minutes * 60; passed += SCRAPE_SECONDS) {
        const grown = samples.map((s) =>
          growing.includes(s.labels['__name__'] ?? '') && s.value > 0 ? { ...s, value: s.value + passed } : s,
        );
        history.push({ atSeconds: startSeconds + passed, samples: grown });
      }
    },
    history: () => history,
    async close() {
      await Promise.all([...roles.values()].map((role) => role.stop()));
      await receiver.close();
      await product.close();
    },
  };
  for (const role of ['reconciler', 'worker', 'ingress'] as const) await stage.startRole(role);
  await stage.createEndpoint('customer-notices');
  await stage.send('customer-notices');
  await stage.untilValue('duepost_deliveries', { state: 'delivered' }, (n) => n === 1);
  for (const queue of ['deliveries', 'commands'])
    await stage.untilValue('duepost_queue_consumers', { queue }, (n) => n === 1);
  await stage.untilValue('duepost_oldest_due_age_seconds', { endpoint: 'ok' }, (n) => n === 0);
  await stage.last(20);
  return stage;
}
