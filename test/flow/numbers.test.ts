import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCli } from '../support/cli.ts';
import { type Destination, forge, openDestination, outcomeOf, publishTo, QUICK } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';

let product: TestProduct;
let destination: Destination;

beforeAll(async () => {
  product = await openTestProduct({ roles: ['worker'], env: QUICK });
  destination = await openDestination(product, {
    answers: [503],
    policy: { kind: 'schedule', retry_schedule: [0, 3600], max_attempts: 12 },
  });
});

afterAll(async () => {
  await destination.receiver.close();
  await product.close();
});

test('attempts go on from 9 to 10, 11 and 12, and end there', async () => {
  const { deliveryId } = await publishTo(product, destination);
  const numbers = Array.from({ length: 12 }, (_, n) => n + 1);
  for (const attempt of numbers) {
    if (attempt > 1) {
      await product.parts.pool.query('update delivery set due_at = now() where delivery_id = $1', [
        deliveryId,
      ]);
      await forge(product, { v: 1, delivery_id: deliveryId, contract_ref: null, attempt });
    }
    await until(`attempt ${attempt}`, async () => {
      const { state, attempts } = await outcomeOf(product, deliveryId);
      return state !== 'in_flight' && attempts[attempt - 1]?.outcome !== undefined;
    });
  }
  const outcome = await outcomeOf(product, deliveryId);
  expect(outcome).toMatchObject({
    state: 'dead_lettered',
    deadReason: 'attempts_exhausted',
    auditRecords: [{ attempts: 12 }],
  });
  expect(outcome.attempts.map((a) => a.attempt)).toEqual(numbers);
  expect(destination.receiver.calls().map((call) => call.attempt)).toEqual(numbers);
  const { stdout } = await runCli(['deliveries', 'show', deliveryId, '--json'], product.env);
  const shown = JSON.parse(stdout) as { attempts: { attempt: number }[] };
  expect(shown.attempts.map((a) => a.attempt)).toEqual(numbers);
});

test('a number beyond 2^53 on the command line is sent as it was written', async () => {
  const payload = '{"id":9007199254740993,"ids":["9007199254740993"]}';
  const { code, json } = await runCli(
    ['publish', '--type', 'order.paid', '--payload', payload, '--key', 'beyond', '--json'],
    product.env,
  );
  expect(code).toBe(0);
  const { rows } = await product.parts.pool.query<{ text: string }>(
    `select convert_from(bytes, 'UTF8') as text from body where source_id = $1`,
    [json.event_id],
  );
  expect(rows[0]?.text).toContain(`"data":${payload}`);
});
