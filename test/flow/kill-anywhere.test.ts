import { afterAll, beforeAll, expect, test } from 'vitest';
import type { OwnProcess } from '../../src/runtime/own-process.ts';
import {
  type Destination,
  openDestination,
  outcomeOf,
  publishTo,
  QUICK,
  startProcess,
} from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';

const DELIVERIES = 300;
let product: TestProduct;
let destination: Destination;

beforeAll(async () => {
  product = await openTestProduct({ env: { ...QUICK, DUEPOST_RECONCILER_GRACE_MS: '1000' } });
  destination = await openDestination(product, { answers: [503, 200], delayMs: 5 });
});

afterAll(async () => {
  await destination.receiver.close();
  await product.close();
});

test('kill -9 of everything, again and again, leaves one effect and one audit record each', async () => {
  const points = [
    'claim.committed:20',
    'call.answered:40',
    'settle.committed:60',
    'ack.due:5',
    'call.started:30',
  ];
  const deliveries = await Promise.all(
    Array.from({ length: DELIVERIES }, () => publishTo(product, destination)),
  );
  let survivor: OwnProcess | undefined;
  for (const point of [...points, undefined]) {
    const process = await startProcess(
      product,
      'worker,reconciler',
      point === undefined ? {} : { DUEPOST_KILL_POINT: point },
    );
    if (point === undefined) survivor = process;
    else expect(await process.ended).toEqual({ code: undefined, signal: 'SIGKILL' });
  }
  const { rows } = await until(
    'every delivery to end',
    async () => {
      const result = await product.parts.pool.query(
        `select d.state, count(r.delivery_id)::int as records
           from delivery d left join audit_record r using (delivery_id) group by d.delivery_id, d.state`,
      );
      return result.rows.every((row) => row.state === 'delivered') && result;
    },
    60_000,
  );
  await survivor?.stop();
  expect(rows.map((row) => row.records)).toEqual(deliveries.map(() => 1));
  const { receiver } = destination;
  expect(receiver.effects()).toHaveLength(DELIVERIES);
  expect(receiver.calls().filter((call) => call.verified !== true || call.kind === 'conflict')).toEqual([]);
  // A second call for an effect that was there already is explained by an attempt that nobody knew the end of.
  for (const repeat of receiver.calls().filter((call) => call.kind === 'repeat')) {
    const outcome = await outcomeOf(product, repeat.deliveryId as string);
    expect(outcome.attempts.map((attempt) => attempt.outcome)).toContain('unknown');
  }
});
