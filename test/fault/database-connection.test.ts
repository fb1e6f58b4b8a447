import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createEventAcceptor } from '../../src/pipeline/accept/events.ts';
import type { PracticeReceiver } from '../../src/receiver/practice.ts';
import type { Config } from '../../src/runtime/config.ts';
import { withLock } from '../../src/store/lock.ts';
import { inTransaction, openPool } from '../../src/store/pool.ts';
import { type Destination, openDestination, outcomeOf, publishTo, QUICK, reaches } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import type { Proxy } from '../support/proxy.ts';
import { recordLog } from '../support/recorded-log.ts';
import { until } from '../support/until.ts';
import { countLines, openWayToDatabase } from './support/cut-off.ts';
import { findViolations } from './support/invariants.ts';

/** Calls have more time than a busy machine takes: what is called twice was not called twice for that. */
const PATIENT = { ...QUICK, DUEPOST_EGRESS_TIMEOUT_MS: '2000', DUEPOST_CLAIM_LEASE_MS: '4000' };
let product: TestProduct;
let destination: Destination;
const receivers: PracticeReceiver[] = [];
let proxy: Proxy;
/** Of whoever reaches the database through the proxy. */
let config: Config;

beforeAll(async () => {
  product = await openTestProduct({ env: PATIENT });
  destination = await openDestination(product);
  receivers.push(destination.receiver);
  ({ proxy, config } = await openWayToDatabase(product, { statementTimeoutMs: 500 }));
});

beforeEach(() => {
  product.recorded.lines.length = 0;
});

afterAll(async () => {
  await Promise.all(receivers.map((receiver) => receiver.close()));
  await product.close();
  await proxy.close();
});

const callsOf = (deliveryId: string) =>
  destination.receiver.calls().filter((call) => call.deliveryId === deliveryId);

async function expectNoViolations(): Promise<void> {
  const timeoutMs = product.config.egress.timeoutMs;
  expect(await findViolations(product.parts.pool, { receivers, timeoutMs })).toEqual([]);
}

/** Delivers one event by a worker that meets the fault once it is at work. */
async function deliverThrough(fault: () => Promise<unknown>): Promise<string> {
  const stop = await product.start(['worker'], config);
  const happened = fault();
  const { deliveryId } = await publishTo(product, destination);
  await happened;
  await reaches(product, deliveryId, 'delivered');
  await stop();
  return deliveryId;
}

test('an acceptance whose commit was not heard of is one event, however often it is asked for again', async () => {
  const pool = openPool(config.database, recordLog().log);
  const acceptor = createEventAcceptor({ db: pool, announcer: product.parts.announcer, timeoutMs: 2_000 });
  const request = {
    idempotencyKey: 'unheard',
    type: 'order.created',
    payload: { total: 1 },
    endpoint: destination.name,
    contractRef: undefined,
    deliverAt: undefined,
    deadlineAt: undefined,
    actor: 'test',
  };
  const cut = proxy.cutWhen('insert_events');
  await expect(acceptor.publish(request)).rejects.toThrow();
  await cut;
  const again = await Promise.all([acceptor.publish(request), acceptor.publish(request)]);
  expect(again.map((event) => event.duplicate)).toEqual([true, true]);
  const stop = await product.start(['worker', 'reconciler']);
  await reaches(product, again[0]?.deliveries[0]?.delivery_id as string, 'delivered');
  await stop();
  await acceptor.close();
  await pool.end();
  const { rows } = await product.parts.pool.query(`select 1 from event where idempotency_key = 'unheard'`);
  expect(rows).toHaveLength(1);
});

test('a claim whose commit was not heard of is given back unused, at once, and costs no call', async () => {
  const deliveryId = await deliverThrough(() => proxy.cutWhen('claim_deliveries'));
  const { attempts } = await outcomeOf(product, deliveryId);
  expect(attempts.map((a) => [a.outcome, a.error])).toEqual([
    ['unknown', 'not_sent'],
    ['delivered', undefined],
  ]);
  expect(callsOf(deliveryId).map((call) => call.attempt)).toEqual([2]);
  expect(countLines(product)).toMatchObject({ claim_waits_for_database: 1, claim_resumed: 1 });
  await expectNoViolations();
});

test.each([
  ['arrived, and its answer did not', true],
  ['never arrived', false],
])('an outcome whose statement %s is stored once, and nothing is called again', async (_, deliver) => {
  const deliveryId = await deliverThrough(() => proxy.cutWhen('settle_attempts', { deliver }));
  const { attempts, auditRecords } = await outcomeOf(product, deliveryId);
  expect(attempts.map((a) => a.outcome)).toEqual(['delivered']);
  expect(auditRecords).toHaveLength(1);
  expect(callsOf(deliveryId)).toHaveLength(1);
  expect(countLines(product)).toMatchObject({ settle_waits_for_database: 1, settle_resumed: 1 });
  await expectNoViolations();
});

test('an outcome that is written twice at the same time, by a connection that was lost and by its successor, counts once', async () => {
  const patient = { ...config, database: { ...config.database, statementTimeoutMs: 20_000 } };
  const stop = await product.start(['worker'], patient);
  const slow = await openDestination(product, { delayMs: 200 });
  receivers.push(slow.receiver);
  const { deliveryId } = await publishTo(product, slow);
  await reaches(product, deliveryId, 'in_flight');
  const client = await product.database.pool.connect();
  await client.query('begin');
  await client.query('select 1 from delivery where delivery_id = $1 for update', [deliveryId]);
  const waiting = (count: number): Promise<unknown> =>
    until(`${count} settlements to wait for the lock`, async () => {
      const { rows } = await product.parts.pool.query(
        `select 1 from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock' and query like '%r.finished_ago_ms%'`,
      );
      return rows.length === count;
    });
  await waiting(1);
  // The server does not notice until it has an answer to give.
  proxy.cut();
  await waiting(2);
  await client.query('commit');
  client.release();
  const { attempts } = await reaches(product, deliveryId, 'delivered');
  await stop();
  expect(attempts.map((a) => a.outcome)).toEqual(['delivered']);
  const { rows } = await product.parts.pool.query(
    `select t.event, a.late from trail t join attempt a using (delivery_id) where delivery_id = $1 order by entry`,
    [deliveryId],
  );
  expect(rows).toEqual([
    { event: 'schedule', late: false },
    { event: 'deliver', late: false },
  ]);
});

test('connections that die idle are replaced, and told of once together', async () => {
  const stop = await product.start(['worker'], config);
  const first = await publishTo(product, destination);
  await reaches(product, first.deliveryId, 'delivered');
  proxy.cut();
  await until('the loss to be noticed', () => (countLines(product)['database_connection_lost'] ?? 0) > 0);
  const second = await publishTo(product, destination);
  await reaches(product, second.deliveryId, 'delivered');
  await stop();
  expect(countLines(product)).toMatchObject({ database_connection_lost: 1, database_connected_again: 1 });
  await expectNoViolations();
});

test('a database that says nothing while it keeps the connection is given up, and served again when it speaks', async () => {
  const stop = await product.start(['worker'], config);
  proxy.freeze(true);
  const { deliveryId } = await publishTo(product, destination);
  await until('the statement to be given up', () => countLines(product)['claim_waits_for_database'] === 1);
  expect(await outcomeOf(product, deliveryId)).toMatchObject({ state: 'due', attempts: [] });
  proxy.freeze(false);
  await reaches(product, deliveryId, 'delivered');
  await stop();
  expect(callsOf(deliveryId)).toHaveLength(1);
  await expectNoViolations();
});

test('a database that is away throughout is asked patiently, and the outcome that waits is not called again', async () => {
  const stop = await product.start(['worker'], config);
  let asked = 0;
  proxy.onClientData((chunk) => {
    if (chunk.includes('settle_attempts')) asked += 1;
  });
  const gone = proxy.cutWhen('settle_attempts', { deliver: false }).then(() => {
    proxy.refuse(true);
    proxy.cut();
  });
  const { deliveryId } = await publishTo(product, destination);
  await gone;
  // Longer than the lease: the claim expires meanwhile, and nobody is there to notice.
  await until('the claim to expire', async () => {
    const { rows } = await product.parts.pool.query(
      'select claim_expires_at < now() as expired from delivery where delivery_id = $1',
      [deliveryId],
    );
    return rows[0].expired === true;
  });
  proxy.refuse(false);
  await reaches(product, deliveryId, 'delivered');
  await stop();
  expect(callsOf(deliveryId)).toHaveLength(1);
  expect(countLines(product)['settle_waits_for_database']).toBe(1);
  expect(asked).toBeLessThanOrEqual(2);
  await expectNoViolations();
});

test('a database that is away is told once by each loop, as an outage, and once when it is back', async () => {
  const before = product.recorded.lines.length;
  const stop = await product.start(['api', 'ingress', 'worker', 'reconciler'], {
    ...config,
    reconciler: { ...config.reconciler, intervalMs: 50 },
  });
  const since = () => product.recorded.lines.slice(before);
  const count = (event: string) => since().filter((line) => line.event === event).length;
  const loops = ['reconcile', 'at_risk', 'observe', 'notify'];
  proxy.refuse(true);
  proxy.cut();
  await until('every loop to fail', () => loops.every((loop) => count(`${loop}_failed`) > 0));
  await until('the process to be unready', () => count('not_ready') > 0);
  proxy.refuse(false);
  await until('every loop to go on', () => loops.every((loop) => count(`${loop}_resumed`) > 0));
  await stop();
  for (const loop of loops) expect([count(`${loop}_failed`), count(`${loop}_resumed`)]).toEqual([1, 1]);
  expect(since().filter(({ level }) => level === 'error')).toEqual([]);
});

test('a connection that dies between two statements of a transaction fails it, and nothing else', async () => {
  const pool = openPool({ ...config.database, poolSize: 1 }, recordLog().log);
  await expect(
    inTransaction(pool, async (db) => {
      const { rows } = await db.query<{ pid: number }>({
        text: 'select pg_backend_pid() as pid',
        values: [],
      });
      await product.parts.pool.query('select pg_terminate_backend($1)', [rows[0]?.pid]);
      await db.query({ text: 'select 1', values: [] });
    }),
  ).rejects.toThrow();
  const { rows } = await pool.query('select 1 as one');
  expect(rows).toEqual([{ one: 1 }]);
  await pool.end();
});

test('a lock that was asked for in vain is not held by a connection in the pool', async () => {
  const pool = openPool({ ...config.database, poolSize: 2 }, recordLog().log);
  await pool.query('select 1');
  proxy.dropReplies(true);
  await expect(withLock(pool, 'test.lock', () => Promise.resolve('done'))).rejects.toThrow();
  proxy.dropReplies(false);
  // Sooner than a pool lets go of a connection that nobody uses.
  const other = await until(
    'the lock to be free',
    () => withLock(product.database.pool, 'test.lock', () => Promise.resolve('done')),
    5_000,
  );
  expect(other).toBe('done');
  expect(await withLock(pool, 'test.lock', () => Promise.resolve('done'))).toBe('done');
  await pool.end();
});
