import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { PracticeReceiver } from '../../src/receiver/practice.ts';
import type { Config } from '../../src/runtime/config.ts';
import {
  type Destination,
  inMs,
  openDestination,
  outcomeOf,
  publishTo,
  QUICK,
  reaches,
} from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';
import { valueOf } from '../telemetry/exposition.ts';
import { watchRole } from '../telemetry/watched-product.ts';
import { countLines, raiseAt } from './support/cut-off.ts';
import { findViolations } from './support/invariants.ts';

/** Calls have more time than a busy machine takes: what is called twice was not called twice for that. */
const PATIENT = { ...QUICK, DUEPOST_EGRESS_TIMEOUT_MS: '2000', DUEPOST_CLAIM_LEASE_MS: '4000' };
let product: TestProduct;
let destination: Destination;
/** Calls that were made before the test. */
let before = 0;

const receivers: PracticeReceiver[] = [];

async function open(options: Parameters<typeof openDestination>[1] = {}): Promise<Destination> {
  const opened = await openDestination(product, options);
  receivers.push(opened.receiver);
  return opened;
}

beforeAll(async () => {
  product = await openTestProduct({ env: PATIENT });
  destination = await open();
});

beforeEach(() => {
  product.recorded.lines.length = 0;
  before = destination.receiver.calls().length;
});

afterAll(async () => {
  await Promise.all(receivers.map((receiver) => receiver.close()));
  await product.close();
});

const callsSince = () => destination.receiver.calls().slice(before);

function withDatabase(changes: Partial<Config['database']>): Config {
  return { ...product.config, database: { ...product.config.database, ...changes } };
}

async function expectNoViolations(): Promise<void> {
  const timeoutMs = product.config.egress.timeoutMs;
  const found = await findViolations(product.parts.pool, {
    receivers,
    timeoutMs,
  });
  expect(found).toEqual([]);
}

test.each([
  ['40P01', 'claim', `new.state = 'in_flight'`],
  ['40001', 'claim', `new.state = 'in_flight'`],
  ['40P01', 'outcome', `new.state = 'delivered'`],
  ['40001', 'outcome', `new.state = 'delivered'`],
])(
  '%s at the %s is tried again with a pause, told once, and nothing is called twice',
  async (code, _, when) => {
    const mend = await raiseAt(product, 'delivery', { when, code, times: 3 });
    const stop = await product.start(['worker']);
    const { deliveryId } = await publishTo(product, destination);
    const outcome = await reaches(product, deliveryId, 'delivered');
    await stop();
    await mend();
    expect(outcome.attempts.map((a) => a.outcome)).toEqual(['delivered']);
    expect(callsSince()).toHaveLength(1);
    const { claim_waits_for_database: claims = 0, settle_waits_for_database: settlements = 0 } =
      countLines(product);
    expect(claims + settlements).toBe(1);
    await expectNoViolations();
  },
);

test('failed writes are counted for as long as an outcome cannot be written', async () => {
  const worker = await watchRole('worker', product.config);
  const failures = async (): Promise<number | undefined> =>
    valueOf(await worker.scrape(), 'duepost_outcome_write_failures_total');
  expect(await failures()).toBe(0);
  const mend = await raiseAt(product, 'delivery', { when: `new.state = 'delivered'`, code: '40001' });
  const { deliveryId } = await publishTo(product, destination);
  await until('the third try to fail', async () => ((await failures()) ?? 0) >= 3);
  await mend();
  await reaches(product, deliveryId, 'delivered');
  await worker.stop();
  expect(callsSince()).toHaveLength(1);
  await expectNoViolations();
});

test('an outcome that waits for a lock longer than a statement may take is written afterwards', async () => {
  const stop = await product.start(['worker'], withDatabase({ statementTimeoutMs: 200 }));
  const slow = await open({ delayMs: 150 });
  const { deliveryId } = await publishTo(product, slow);
  await reaches(product, deliveryId, 'in_flight');
  const client = await product.database.pool.connect();
  await client.query('begin');
  await client.query('select 1 from delivery where delivery_id = $1 for update', [deliveryId]);
  await until('the statement to be cancelled', () => countLines(product)['settle_waits_for_database'] === 1);
  await client.query('rollback');
  client.release();
  const outcome = await reaches(product, deliveryId, 'delivered');
  await stop();
  expect(outcome.attempts.map((a) => a.outcome)).toEqual(['delivered']);
  expect(slow.receiver.calls()).toHaveLength(1);
});

test('a database that has become read-only is waited for, and asked without haste', async () => {
  const { pool } = product.database;
  const { rows } = await pool.query('select current_database() as name');
  const readOnly = async (on: boolean): Promise<void> => {
    // Sessions that are open keep what they began with: as after a failover, they end.
    await pool.query(
      `alter database ${rows[0].name} ${on ? 'set default_transaction_read_only = on' : 'reset default_transaction_read_only'}`,
    );
    await pool.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()',
      [rows[0].name],
    );
  };
  const { deliveryId } = await publishTo(product, destination);
  const client = await pool.connect();
  client.on('error', () => undefined);
  await readOnly(true);
  const stop = await product.start(['worker']);
  await until('the claim to be refused', () => countLines(product)['claim_waits_for_database'] === 1);
  expect(callsSince()).toEqual([]);
  client.release(true);
  const writable = await product.database.pool.connect();
  await writable.query('set default_transaction_read_only = off');
  await writable.query(`alter database ${rows[0].name} reset default_transaction_read_only`);
  await writable.query(
    'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()',
    [rows[0].name],
  );
  writable.release(true);
  await reaches(product, deliveryId, 'delivered');
  await stop();
  expect(callsSince()).toHaveLength(1);
  await expectNoViolations();
});

test.each(['worker', 'reconciler'] as const)('one connection is enough for a %s', async (role) => {
  const other = role === 'worker' ? 'reconciler' : 'worker';
  const stops = await Promise.all([
    product.start([role], withDatabase({ poolSize: 1, statementTimeoutMs: 1_000 })),
    product.start([other]),
  ]);
  const events = await Promise.all(
    Array.from({ length: 60 }, (_, n) => publishTo(product, destination, { deliverAt: inMs(n * 10) })),
  );
  for (const { deliveryId } of events) await reaches(product, deliveryId, 'delivered');
  await Promise.all(stops.map((stop) => stop()));
  const failures = product.recorded.lines.filter((line) => line.level === 'error');
  expect(failures).toEqual([]);
  expect(callsSince()).toHaveLength(60);
  await expectNoViolations();
});

test('without its trail entry an event is not accepted: nothing of it is there, and the same request succeeds later', async () => {
  const mend = await raiseAt(product, 'trail');
  const request = { idempotencyKey: 'no-trail' };
  await expect(publishTo(product, destination, request)).rejects.toThrow('brought about by a test');
  const count = async (): Promise<unknown> => {
    const { rows } = await product.parts.pool.query(
      `select (select count(*)::int from event where idempotency_key = 'no-trail') as events,
              (select count(*)::int from delivery where idempotency_key like 'no-trail:%') as deliveries`,
    );
    return rows[0];
  };
  expect(await count()).toEqual({ events: 0, deliveries: 0 });
  await mend();
  await publishTo(product, destination, request);
  expect(await count()).toEqual({ events: 1, deliveries: 1 });
  const stop = await product.start(['worker']);
  await until('it to be delivered', () => callsSince().length === 1);
  await stop();
});

test('without its attempt row a claim is none: nothing is called, and the database is not asked in a hurry', async () => {
  const mend = await raiseAt(product, 'attempt');
  const stop = await product.start(['worker']);
  const { deliveryId } = await publishTo(product, destination);
  await until('the fault', () => (countLines(product)['consumer.fault'] ?? 0) > 0);
  const { rows } = await product.parts.pool.query('select last_value::int as n from fault_count');
  expect(rows[0].n).toBeLessThan(20);
  expect(await outcomeOf(product, deliveryId)).toMatchObject({ state: 'due', attempts: [] });
  expect(callsSince()).toEqual([]);
  await mend();
  await reaches(product, deliveryId, 'delivered');
  await stop();
  expect(callsSince()).toHaveLength(1);
  await expectNoViolations();
});

test('without its audit record an outcome is not stored, and the endpoint is called no more often than the policy says', async () => {
  const limited = await open({
    policy: { kind: 'schedule', retry_schedule: [0, 1], max_attempts: 2 },
  });
  const mend = await raiseAt(product, 'audit_record');
  const stop = await product.start(['worker', 'reconciler']);
  const { deliveryId } = await publishTo(product, limited);
  // The last attempt's claim expires too, and its end has no record either.
  await until('both attempts to be made and the second to expire', async () => {
    const { rows } = await product.parts.pool.query(
      'select attempt, claim_expires_at < now() as expired from delivery where delivery_id = $1',
      [deliveryId],
    );
    return rows[0].attempt === 2 && rows[0].expired === true;
  });
  const { rows } = await product.parts.pool.query('select last_value::int as n from fault_count');
  expect(rows[0].n).toBeLessThan(30);
  expect(limited.receiver.calls().map((call) => call.attempt)).toEqual([1, 2]);
  expect((await outcomeOf(product, deliveryId)).auditRecords).toEqual([]);
  await mend();
  const outcome = await reaches(product, deliveryId, 'dead_lettered');
  await stop();
  expect(outcome).toMatchObject({
    deadReason: 'attempts_exhausted',
    attempts: [{ outcome: 'unknown' }, { outcome: 'unknown' }],
    auditRecords: [{ state: 'dead_lettered', attempts: 2 }],
  });
  expect(limited.receiver.calls()).toHaveLength(2);
});

test('without its audit record a 410 disables nothing, and with it everything follows at once', async () => {
  const gone = await open({ answers: [410] });
  const mend = await raiseAt(product, 'audit_record');
  const stop = await product.start(['worker', 'reconciler']);
  const { deliveryId } = await publishTo(product, gone);
  await until('the refusal', () => (countLines(product)['consumer.fault'] ?? 0) > 0);
  const status = async (): Promise<unknown> => {
    const { rows } = await product.parts.pool.query('select status from endpoint where endpoint_id = $1', [
      gone.endpointId,
    ]);
    return rows[0].status;
  };
  expect([await status(), (await outcomeOf(product, deliveryId)).state]).toEqual(['active', 'in_flight']);
  await mend();
  const outcome = await reaches(product, deliveryId, 'dead_lettered');
  await stop();
  expect(outcome).toMatchObject({ deadReason: 'endpoint_gone', auditRecords: [{ state: 'dead_lettered' }] });
  expect(await status()).toBe('disabled');
});
