import { afterAll, beforeAll, expect, test } from 'vitest';
import type { State } from '../../src/domain/state.ts';
import { listPendingOfEndpoint } from '../../src/store/due.ts';
import { moveDeliveries } from '../../src/store/moves.ts';
import { inTransaction } from '../../src/store/pool.ts';
import { inMs, openDestination, publishTo } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';

const PAGE = 500;

let product: TestProduct;

beforeAll(async () => {
  product = await openTestProduct();
});

afterAll(() => product.close());

test('a resume goes on past a page that the reconciler releases at the same moment', async () => {
  const { pool } = product.parts;
  const destination = await openDestination(product);
  await destination.receiver.close();
  const { endpointId } = destination;
  const deliverAt = inMs(3_600_000);
  await Promise.all(Array.from({ length: PAGE + 1 }, () => publishTo(product, destination, { deliverAt })));
  await product.endpoints.pause(destination.name, { actor: 'test' });
  const held = await pending('held');
  expect(held).toHaveLength(PAGE + 1);

  let resumed: Promise<unknown> | undefined;
  await inTransaction(pool, async (db) => {
    await moveDeliveries(db, {
      move: 'release',
      deliveryIds: held.slice(0, PAGE),
      actor: 'reconciler',
      trail: '{}',
      timeoutMs: 2_000,
    });
    resumed = product.endpoints.resume(destination.name, { actor: 'test' });
    await until('the resume waits for the page', async () => {
      const { rows } = await pool.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      return rows.length > 0;
    });
  });
  await resumed;
  expect(await pending('held')).toEqual([]);
  expect(await pending('due')).toHaveLength(PAGE + 1);

  async function pending(state: State): Promise<string[]> {
    const page = { endpointId, states: [state], after: undefined, limit: 10 * PAGE };
    return (await listPendingOfEndpoint(pool, page)).deliveryIds;
  }
});
