import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { withConnection } from '../../src/broker/connection.ts';
import { namesOf } from '../../src/broker/topology.ts';
import { applyTopology } from '../../src/broker/topology-apply.ts';
import {
  type Destination,
  drainQueue,
  inMs,
  openDestination,
  publishTo,
  QUICK,
  reaches,
  startProcess,
} from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { recordLog } from '../support/recorded-log.ts';
import { until } from '../support/until.ts';
import { findViolations } from './support/invariants.ts';

let product: TestProduct;
let destination: Destination;

beforeAll(async () => {
  product = await openTestProduct({
    env: { ...QUICK, DUEPOST_EGRESS_TIMEOUT_MS: '200', DUEPOST_CLAIM_LEASE_MS: '2200' },
  });
  destination = await openDestination(product);
});

beforeEach(() => {
  product.recorded.lines.length = 0;
});

afterAll(async () => {
  await destination.receiver.close();
  await product.close();
});

async function expectNoViolations(): Promise<void> {
  const timeoutMs = product.config.egress.timeoutMs;
  const { receiver } = destination;
  expect(await findViolations(product.parts.pool, { receivers: [receiver], timeoutMs })).toEqual([]);
}

test('wake-ups that fall due while the queue of due ones is gone are found again when it is back', async () => {
  const dueAt = inMs(2_500);
  const events = await Promise.all(
    Array.from({ length: 50 }, () => publishTo(product, destination, { deliverAt: dueAt })),
  );
  await product.parts.announcer.drain();
  const { deliveries, unrouted } = namesOf(product.config.broker.prefix);
  await withConnection(product.config.broker, 'test', async (connection) => {
    const channel = await connection.createChannel();
    await channel.deleteQueue(deliveries);
  });
  await until('them to fall due', () => Date.now() > dueAt.getTime());
  expect(await applyTopology(product.config.broker, recordLog().log)).toEqual([]);
  const stop = await product.start(['worker', 'reconciler']);
  for (const { deliveryId } of events) await reaches(product, deliveryId, 'delivered');
  await stop();
  expect(destination.receiver.effects()).toHaveLength(50);
  await drainQueue(product, unrouted);
  await expectNoViolations();
});

test('a delivery that kills every worker it meets holds up no other, and its own end comes', async () => {
  const before = destination.receiver.effects().length;
  const deadly = await openDestination(product, {
    policy: { kind: 'schedule', retry_schedule: [0, 1], max_attempts: 3 },
  });
  // The kill stands for a crash: whoever calls this endpoint dies of it, as often as it is tried.
  const doomed = await publishTo(product, deadly);
  for (let deaths = 1; deaths <= 3; deaths += 1) {
    const worker = await startProcess(product, 'worker,reconciler', { DUEPOST_KILL_POINT: 'call.started' });
    expect((await worker.ended).signal).toBe('SIGKILL');
  }
  const others = await Promise.all(Array.from({ length: 20 }, () => publishTo(product, destination)));
  const stop = await product.start(['worker', 'reconciler']);
  for (const { deliveryId } of others) await reaches(product, deliveryId, 'delivered');
  const outcome = await reaches(product, doomed.deliveryId, 'dead_lettered');
  await stop();
  expect(outcome).toMatchObject({
    deadReason: 'attempts_exhausted',
    attempts: [{ outcome: 'unknown' }, { outcome: 'unknown' }, { outcome: 'unknown' }],
    auditRecords: [{ state: 'dead_lettered', attempts: 3 }],
  });
  expect(destination.receiver.effects()).toHaveLength(before + others.length);
  await deadly.receiver.close();
});
