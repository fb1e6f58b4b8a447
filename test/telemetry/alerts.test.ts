import { afterEach, expect, test } from 'vitest';
import { withConnection } from '../../src/broker/connection.ts';
import { createManagement } from '../../src/broker/management.ts';
import { namesOf } from '../../src/broker/topology.ts';
import { startPracticeReceiver } from '../../src/receiver/practice.ts';
import { claimOne } from '../support/attempts.ts';
import { targetOf, throughPort } from '../support/broker.ts';
import { startProxy } from '../support/proxy.ts';
import { until } from '../support/until.ts';
import { valueOf } from './exposition.ts';
import { alertsFiring, loadRules } from './rules.ts';
import { openStage, type Stage } from './stage.ts';

const RULES = loadRules();

let stage: Stage | undefined;

afterEach(async () => {
  await stage?.close();
  stage = undefined;
});

async function open(env?: Readonly<Record<string, string>>): Promise<Stage> {
  stage = await openStage(env);
  expect(alertsFiring(RULES, stage.history())).toEqual([]);
  return stage;
}

/** The alerts after what was brought about has lasted for some minutes. */
async function alertsAfter(opened: Stage, minutes = 12, growing?: readonly string[]): Promise<string[]> {
  await opened.last(minutes, growing);
  return alertsFiring(RULES, opened.history());
}

function onChannel(opened: Stage, work: Parameters<typeof withConnection>[2]): Promise<unknown> {
  return withConnection(opened.product.config.broker, 'test', work);
}

/** Where nobody listens any more. */
async function deadUrl(): Promise<string> {
  const gone = await startPracticeReceiver();
  await gone.close();
  return gone.url;
}

async function command(opened: Stage, name: string, body: object): Promise<void> {
  const { commands } = namesOf(opened.product.config.broker.prefix);
  const message = { exchange: commands, routingKey: name, body: Buffer.from(JSON.stringify(body)) };
  await opened.product.parts.publisher.publish(message);
}

test('a healthy idle system fires no alert', async () => {
  const opened = await open();
  expect(await alertsAfter(opened, 60)).toEqual([]);
});

test('a stopped worker is an alert of its own, whatever is overdue by then', async () => {
  const opened = await open();
  await opened.stopRole('worker');
  await opened.send('customer-notices');
  await opened.untilValue('duepost_queue_consumers', { queue: 'deliveries' }, (n) => n === 0);
  await opened.untilValue('duepost_oldest_due_age_seconds', { endpoint: 'ok' }, (n) => n > 0.5);
  expect(await alertsAfter(opened, 12, ['duepost_oldest_due_age_seconds'])).toEqual(['DuepostNoWorker']);
});

test('after a worker comes back, what the reconciler announced meanwhile is no loss', async () => {
  const opened = await open();
  await opened.stopRole('worker');
  await opened.send('customer-notices');
  await opened.untilValue('duepost_reconciler_hits_total', { kind: 'silent' }, (n) => n > 0);
  await opened.last(0);
  await opened.startRole('worker');
  await opened.untilValue('duepost_deliveries', { state: 'delivered' }, (n) => n === 2);
  await opened.untilValue('duepost_queue_consumers', { queue: 'deliveries' }, (n) => n === 1);
  expect(await alertsAfter(opened)).toEqual([]);
});

test('a stopped reconciler is seen by its silence', async () => {
  const opened = await open();
  await opened.stopRole('reconciler');
  expect(await alertsAfter(opened)).toEqual(['DuepostReconcilerStopped']);
});

test('a stalled poller is seen by its age although its process lives', async () => {
  const opened = await open();
  await opened.product.parts.pool.query('alter table watermark rename to watermark_away');
  await opened.untilValue('duepost_loop_age_seconds', { loop: 'reconcile' }, (n) => n > 2);
  expect(await alertsAfter(opened, 12, ['duepost_loop_age_seconds'])).toEqual(['DuepostLoopStalled']);
});

test('a stand-by beside a poller that hangs with its lock does not look like a poller at work', async () => {
  const opened = await open();
  const hanging = await opened.product.parts.pool.connect();
  await opened.untilValue('duepost_loop_age_seconds', { loop: 'reconcile' }, (n) => n < 2);
  // Between two passes of its own the lock is free.
  await hanging.query("select pg_advisory_lock(hashtext('duepost.reconciler'))");
  await opened.untilValue('duepost_loop_age_seconds', { loop: 'reconcile' }, (n) => n > 2);
  hanging.release(true);
  await opened.untilValue('duepost_loop_age_seconds', { loop: 'reconcile' }, (n) => n < 2);
});

test('a hung worker that still holds its connection is seen by what is overdue', async () => {
  const opened = await open();
  opened.receiver.setAnswers(['hang']);
  const endpointId = await opened.createEndpoint('slow');
  await opened.product.parts.pool.query('update endpoint set max_in_flight = 1 where endpoint_id = $1', [
    endpointId,
  ]);
  await Promise.all([1, 2, 3].map(() => opened.send('slow')));
  await opened.untilValue('duepost_calls_in_flight', {}, (n) => n === 1);
  await opened.untilValue('duepost_oldest_due_age_seconds', { endpoint: 'ok' }, (n) => n > 0.3);
  expect(await alertsAfter(opened, 12, ['duepost_oldest_due_age_seconds'])).toEqual(['DuepostOverdue']);
});

test('a full queue is seen by what the broker refuses', async () => {
  const opened = await open();
  const { broker } = opened.product.config;
  const policy = `${broker.prefix}-full`;
  await createManagement(broker)?.putPolicy(policy, {
    pattern: `^${broker.prefix}\\.v1\\.delay\\.t0032$`,
    definition: { 'max-length': 1 },
    priority: 10,
    'apply-to': 'queues',
  });
  try {
    let sent = 0;
    await until('a refusal', async () => {
      sent += 1;
      await command(opened, 'event.publish', {
        v: 1,
        type: 'order.created',
        idempotency_key: `full-${sent}`,
        endpoint: 'customer-notices',
        deliver_at: new Date(Date.now() + 60_000).toISOString(),
        payload: {},
      });
      const labels = { instance: 'ingress', result: 'nacked' };
      return (valueOf(await opened.scrape(), 'duepost_publishes_total', labels) ?? 0) > 0;
    });
    expect(await alertsAfter(opened)).toEqual(['DuepostPublishesRefused']);
  } finally {
    await createManagement(broker)?.deletePolicy(policy);
  }
});

test('a dead endpoint is an alert, and nothing else', async () => {
  const opened = await open();
  await opened.createEndpoint('dead', await deadUrl());
  await Promise.all([1, 2, 3, 4, 5, 6].map(() => opened.send('dead')));
  await opened.untilValue('duepost_endpoints', { condition: 'failing' }, (n) => n === 1);
  expect(await alertsAfter(opened)).toEqual(['DuepostEndpointFailing']);
  const samples = await opened.scrape();
  expect(
    valueOf(samples, 'duepost_attempts_total', { outcome: 'retryable', status_class: 'none' }),
  ).toBeGreaterThanOrEqual(6);
});

test('what a dead endpoint puts at risk is told before its deadline', async () => {
  const opened = await open();
  await opened.createEndpoint('dead', await deadUrl());
  await Promise.all([1, 2, 3, 4, 5, 6].map(() => opened.send('dead', { deadlineInMs: 3_600_000 })));
  await opened.untilValue('duepost_at_risk_deliveries', {}, (n) => n === 6);
  expect(await alertsAfter(opened)).toEqual(['DuepostAtRisk', 'DuepostEndpointFailing']);
});

test('a missed deadline fires', async () => {
  const opened = await open();
  const endpointId = await opened.createEndpoint('paused');
  await opened.product.endpoints.pause(endpointId, { actor: 'test' });
  await opened.send('paused', { deadlineInMs: 1_500 });
  await opened.untilValue('duepost_deadlines_missed_total', { instance: 'reconciler' }, (n) => n === 1);
  await opened.untilValue('duepost_at_risk_deliveries', {}, (n) => n === 0);
  expect(await alertsAfter(opened)).toEqual(['DuepostDeadlineMissed']);
});

test('a worker that dies in the middle of a call is seen by the claim that lapses', async () => {
  const opened = await open();
  const { parts, config } = opened.product;
  await opened.stopRole('worker');
  const deliveryId = await opened.send('customer-notices');
  const verdict = await claimOne(parts.pool, deliveryId, {
    leaseMs: 1,
    timeoutMs: config.egress.timeoutMs,
    holder: 'worker@elsewhere',
    maxPerEndpoint: 1,
  });
  expect(verdict?.verdict).toBe('claimed');
  await opened.startRole('worker');
  await opened.untilValue('duepost_wakeups_total', { verdict: 'lapsed' }, (n) => n === 1);
  await opened.untilValue('duepost_deliveries', { state: 'delivered' }, (n) => n === 2);
  await opened.untilValue('duepost_queue_consumers', { queue: 'deliveries' }, (n) => n === 1);
  expect(await alertsAfter(opened)).toEqual(['DuepostClaimsLapsed']);
});

test('the drills that retrying heals are seen in a metric and wake nobody', async () => {
  const opened = await open();
  opened.receiver.setAnswers([503, 503, 429, 200]);
  const deliveryId = await opened.send('customer-notices');
  await opened.untilValue(
    'duepost_attempts_total',
    { outcome: 'retryable', status_class: '5xx' },
    (n) => n === 2,
  );
  await opened.untilValue(
    'duepost_attempts_total',
    { outcome: 'retryable', status_class: '4xx' },
    (n) => n === 1,
  );
  // The same wake-up once more, and once more.
  await opened.product.parts.publisher.wake({ deliveryId, attempt: 1 }, 0);
  await opened.untilValue('duepost_wakeups_total', { verdict: 'nothing' }, (n) => n >= 1);
  expect(await alertsAfter(opened)).toEqual([]);
});

test('a wake-up that the broker lost is found and told', async () => {
  const opened = await open();
  await opened.send('customer-notices', { inMs: 1_500 });
  await onChannel(opened, async (connection) => {
    const channel = await connection.createChannel();
    const { tiers } = namesOf(opened.product.config.broker.prefix);
    await until('the wake-up', async () => (await channel.purgeQueue(tiers[0] ?? '')).messageCount > 0);
  });
  await opened.untilValue('duepost_reconciler_hits_total', { kind: 'silent' }, (n) => n === 1);
  await opened.untilValue('duepost_deliveries', { state: 'delivered' }, (n) => n === 2);
  expect(await alertsAfter(opened)).toEqual(['DuepostWakeUpsLost']);
});

test('a message that nobody understands fires until somebody has looked', async () => {
  const opened = await open();
  const { wake } = namesOf(opened.product.config.broker.prefix);
  await opened.product.parts.publisher.publish({ exchange: wake, routingKey: 'now', body: Buffer.from('?') });
  await opened.untilValue('duepost_queue_messages', { queue: 'poison' }, (n) => n === 1);
  expect(await alertsAfter(opened)).toEqual(['DuepostMessagesSetAside']);
});

test('a rejected command fires, and its code is counted', async () => {
  const opened = await open();
  await command(opened, 'event.publish', { v: 7 });
  await opened.untilValue('duepost_queue_messages', { queue: 'commands.rejected' }, (n) => n === 1);
  expect(await alertsAfter(opened)).toEqual(['DuepostCommandsRejected']);
  const labels = { command: 'event.publish', result: 'unsupported_version' };
  expect(valueOf(await opened.scrape(), 'duepost_commands_total', labels)).toBe(1);
});

test('a process that cannot reach the broker is named', async () => {
  const opened = await open();
  const { broker } = opened.product.config;
  const proxy = await startProxy(targetOf(broker));
  try {
    await opened.stopRole('ingress');
    await opened.startRole('ingress', { ...opened.product.config, broker: throughPort(broker, proxy.port) });
    await opened.untilValue('duepost_publisher_ready', { instance: 'ingress' }, (n) => n === 1);
    proxy.refuse(true);
    proxy.cut();
    await opened.untilValue('duepost_publisher_ready', { instance: 'ingress' }, (n) => n === 0);
    expect(await alertsAfter(opened)).toEqual(['DuepostBrokerAway']);
  } finally {
    await opened.stopRole('ingress');
    await proxy.close();
  }
});
