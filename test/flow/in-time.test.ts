import { afterAll, beforeAll, expect, test } from 'vitest';
import { namesOf } from '../../src/broker/topology.ts';
import {
  type Destination,
  inMs,
  openDestination,
  outcomeOf,
  publishTo,
  QUICK,
  reaches,
  takeMessage,
} from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';

let product: TestProduct;
let destination: Destination;
const timeoutMs = Number(QUICK['DUEPOST_EGRESS_TIMEOUT_MS']);

beforeAll(async () => {
  product = await openTestProduct({ roles: ['reconciler'], env: QUICK });
  destination = await openDestination(product, {
    answers: [503],
    policy: { kind: 'schedule', retry_schedule: [0, 1], max_attempts: 3 },
  });
});

afterAll(async () => {
  await destination.receiver.close();
  await product.close();
});

test('a deadline that passes before anybody could send is dead-lettered, with one notice', async () => {
  const { deliveryId } = await publishTo(product, destination, {
    deadlineAt: inMs(timeoutMs + 1_000),
    contractRef: 'pol-7781',
  });
  const outcome = await reaches(product, deliveryId, 'dead_lettered');
  expect(outcome).toMatchObject({
    deadReason: 'deadline_passed',
    attempts: [],
    auditRecords: [{ state: 'dead_lettered', attempts: 0, inTime: false }],
  });
  const notice = await takeMessage(product, namesOf(product.config.broker.prefix).deadLetters);
  expect(JSON.parse(notice.content.toString())).toEqual({
    v: 1,
    delivery_id: deliveryId,
    contract_ref: 'pol-7781',
    dead_reason: 'deadline_passed',
  });
});

test('an event is refused when an endpoint would first wait until after its deadline', async () => {
  const slow = await openDestination(product, {
    policy: { kind: 'schedule', retry_schedule: [3600], max_attempts: 3 },
  });
  await slow.receiver.close();
  const refused = publishTo(product, slow, { deadlineAt: inMs(600_000) });
  await expect(refused).rejects.toMatchObject({
    code: 'window_closed',
    message: expect.stringContaining(`endpoint ${slow.name} first waits 3600 s`),
  });
  const { deliveries } = await publishTo(product, slow, { deadlineAt: inMs(3_600_000 + 60_000) });
  expect(deliveries).toMatchObject([{ endpoint_id: slow.endpointId, state: 'due' }]);
  const later = publishTo(product, slow, { deliverAt: inMs(60_000), deadlineAt: inMs(3_600_000 + 60_000) });
  await expect(later).rejects.toMatchObject({ code: 'window_closed' });
});

test('no attempt starts before it is due, and none when a call could not end before the deadline', async () => {
  await product.start(['worker']);
  const deliveries = await Promise.all(
    Array.from({ length: 40 }, (_, i) => {
      const dueAt = inMs(i * 50);
      return publishTo(product, destination, {
        deliverAt: dueAt,
        deadlineAt: new Date(dueAt.getTime() + timeoutMs + 1_000 + i * 250),
      });
    }),
  );
  for (const { deliveryId } of deliveries) {
    await until(
      `${deliveryId} has ended`,
      async () => (await outcomeOf(product, deliveryId)).dueAt === undefined,
    );
  }
  const { rows } = await product.parts.pool.query<{ early: boolean; late: boolean }>(
    `select a.started_at < coalesce(
              (select b.next_due_at from attempt b where b.delivery_id = a.delivery_id and b.attempt = a.attempt - 1),
              d.scheduled_at) as early,
            a.started_at > d.deadline_at - $1 * interval '1 millisecond' as late
       from attempt a
       join delivery d using (delivery_id)
      where a.started_at is not null`,
    [timeoutMs],
  );
  expect(rows.length).toBeGreaterThan(deliveries.length);
  expect(rows.filter((row) => row.early)).toEqual([]);
  expect(rows.filter((row) => row.late)).toEqual([]);
});
