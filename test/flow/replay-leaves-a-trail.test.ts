import { afterAll, beforeAll, expect, test } from 'vitest';
import { namesOf } from '../../src/broker/topology.ts';
import { createDeliveryOperator } from '../../src/pipeline/operate/deliveries.ts';
import { raiseAt } from '../fault/support/cut-off.ts';
import { type Destination, openDestination, outcomeOf, publishTo, QUICK, reaches } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';

let product: TestProduct;
let destination: Destination;

beforeAll(async () => {
  product = await openTestProduct({ roles: ['worker', 'reconciler'], env: QUICK });
  destination = await openDestination(product, {
    answers: [503, 200],
    policy: { kind: 'schedule', retry_schedule: [0], max_attempts: 1 },
  });
});

afterAll(async () => {
  await destination.receiver.close();
  await product.close();
});

test('without its trail entry nothing is replayed; with it the replay says who and why', async () => {
  const { deliveryId } = await publishTo(product, destination);
  await reaches(product, deliveryId, 'dead_lettered');
  const { pool, publisher, announcer } = product.parts;
  const operator = createDeliveryOperator({
    pool,
    publisher,
    announcer,
    deliveriesQueue: namesOf(product.config.broker.prefix).deliveries,
    timeoutMs: product.config.egress.timeoutMs,
  });
  const by = { actor: 'key:jane', reason: 'the receiver is well again', force: false };
  const mend = await raiseAt(product, 'trail');
  await expect(operator.retry(deliveryId, by)).rejects.toThrow('brought about by a test');
  await mend();
  expect(await outcomeOf(product, deliveryId)).toMatchObject({
    state: 'dead_lettered',
    attempts: [{ attempt: 1 }],
    auditRecords: [{ cycle: 1 }],
  });
  expect(destination.receiver.calls()).toHaveLength(1);

  await operator.retry(deliveryId, by);
  await reaches(product, deliveryId, 'delivered');
  const { rows } = await pool.query(
    `select actor, detail::json ->> 'reason' as reason from trail where delivery_id = $1 and event = 'replay'`,
    [deliveryId],
  );
  expect(rows).toEqual([{ actor: 'key:jane', reason: 'the receiver is well again' }]);
});
