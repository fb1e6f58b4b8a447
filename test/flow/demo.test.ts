import { afterAll, beforeAll, expect, test } from 'vitest';
import { startOwnProcess } from '../../src/runtime/own-process.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';

let product: TestProduct;

beforeAll(async () => {
  product = await openTestProduct();
});

afterAll(() => product.close());

test('the demonstration ends in evidence, also a second time, and leaves nothing behind', async () => {
  for (const _ of [1, 2]) {
    const run = startOwnProcess(['demo', '--json'], product.env);
    expect(await run.ended).toEqual({ code: 0, signal: undefined });
    const { ok, reminders } = JSON.parse(run.output());
    expect(ok).toBe(true);
    expect(reminders).toMatchObject(
      [[200], [503, 503, 200], [200]].map((statuses, i) => ({
        contract_ref: expect.stringMatching(new RegExp(`^pol-778${i + 1}-`)),
        state: 'delivered',
        in_time: true,
        revision: i === 2 ? 2 : 1,
        attempts: statuses.map((status, n) => ({ attempt: n + 1, status })),
        calls: statuses.length,
        different_calls: 1,
        effects: 1,
        audit_records: 1,
      })),
    );
  }
  const { rows } = await product.parts.pool.query(
    `select (select count(*)::int from endpoint where deleted_at is null) as endpoints,
            (select count(*)::int from api_key where revoked_at is null) as keys,
            (select count(*)::int from delivery where due_at is not null) as waiting`,
  );
  expect(rows[0]).toEqual({ endpoints: 0, keys: 0, waiting: 0 });
});
