import { afterAll, beforeAll, expect, test } from 'vitest';
import { listPendingOfEndpoint } from '../../src/store/due.ts';
import { fillDeliveries } from '../support/fill.ts';
import { openDestination } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';

let product: TestProduct;

beforeAll(async () => {
  product = await openTestProduct();
});

afterAll(() => product.close());

async function statesOf(endpointId: string): Promise<Record<string, number>> {
  const { rows } = await product.parts.pool.query<{ state: string; count: number }>(
    'select state, count(*)::int from delivery where endpoint_id = $1 group by state',
    [endpointId],
  );
  return Object.fromEntries(rows.map(({ state, count }) => [state, count]));
}

test('pausing, resuming and deleting an endpoint reach all that waits for it, however much waits for others', async () => {
  const [other, own] = [await openDestination(product), await openDestination(product)];
  await Promise.all([other.receiver.close(), own.receiver.close()]);
  const { pool } = product.parts;
  const hourMs = 3_600_000;
  await fillDeliveries(pool, { ...other, state: 'due', count: 6_000, dueAgoMs: -hourMs });
  await fillDeliveries(pool, { ...own, state: 'due', count: 600, dueAgoMs: -hourMs - 5_900 });
  const by = { actor: 'test' };

  await product.endpoints.pause(own.name, by);
  expect(await statesOf(own.endpointId)).toEqual({ held: 600 });
  await product.endpoints.resume(own.name, by);
  expect(await statesOf(own.endpointId)).toEqual({ due: 600 });
  await pool.query(
    `update delivery set state = 'held' where endpoint_id = $1 and idempotency_key like '%7'`,
    [own.endpointId],
  );
  await product.endpoints.remove(own.name, by);
  expect(await statesOf(own.endpointId)).toEqual({ dead_lettered: 600 });
  expect(await statesOf(other.endpointId)).toEqual({ due: 6_000 });
});

test('a page begins behind the one before, whatever has become of that', async () => {
  const destination = await openDestination(product);
  await destination.receiver.close();
  const { endpointId } = destination;
  const { pool } = product.parts;
  await fillDeliveries(pool, { endpointId, state: 'held', count: 30, dueAgoMs: 7_200_000 });
  const page = { endpointId, states: ['held'] as const, limit: 20 };
  const first = await listPendingOfEndpoint(pool, { ...page, after: undefined });
  const second = await listPendingOfEndpoint(pool, { ...page, after: first.next });
  expect([first, second].map(({ deliveryIds }) => deliveryIds.length)).toEqual([20, 10]);
  expect(new Set([...first.deliveryIds, ...second.deliveryIds]).size).toBe(30);
});
