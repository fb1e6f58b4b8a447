import { afterAll, beforeAll, expect, test } from 'vitest';
import { withConnection } from '../../src/broker/connection.ts';
import { namesOf } from '../../src/broker/topology.ts';
import { applyTopology } from '../../src/broker/topology-apply.ts';
import { targetOf, throughPort } from '../support/broker.ts';
import { databaseTarget, databaseThroughPort } from '../support/database.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { startProxy } from '../support/proxy.ts';
import { until } from '../support/until.ts';

let product: TestProduct;

beforeAll(async () => {
  product = await openTestProduct();
});

afterAll(() => product.close());

function url(): string {
  return product.recorded.lines.findLast((line) => line.event === 'http_listening')?.fields['url'] as string;
}

async function readiness(at: string): Promise<{ status: number; checks: Record<string, string> }> {
  const response = await fetch(`${at}/readyz`);
  const { checks } = (await response.json()) as { checks: Record<string, string> };
  return { status: response.status, checks };
}

test('a process without the api role serves health, readiness and metrics, and no API', async () => {
  const stop = await product.start(['worker', 'ingress', 'reconciler']);
  const at = url();
  const health = await fetch(`${at}/healthz`);
  expect([health.status, await health.json()]).toEqual([200, { status: 'ok' }]);
  await until('readiness', async () => (await readiness(at)).status === 200);
  expect((await readiness(at)).checks).toEqual({
    time_zone_data: 'ok',
    database: 'ok',
    migrations: 'ok',
    broker: 'ok',
    topology: 'ok',
    worker: 'ok',
    ingress: 'ok',
  });
  const metrics = await fetch(`${at}/metrics`);
  expect([metrics.status, metrics.headers.get('content-type')]).toEqual([
    200,
    'text/plain; version=0.0.4; charset=utf-8',
  ]);
  expect(await metrics.text()).toContain('# TYPE duepost');
  expect((await fetch(`${at}/v1/endpoints`)).status).toBe(404);
  await stop();
  await expect(fetch(`${at}/healthz`)).rejects.toThrow();
});

test('what is not ready is named, without addresses', async () => {
  const database = await startProxy(databaseTarget());
  const broker = await startProxy(targetOf(product.config.broker));
  const config = {
    ...product.config,
    database: { ...product.config.database, url: databaseThroughPort(product.database.url, database.port) },
    broker: throughPort(product.config.broker, broker.port) as typeof product.config.broker,
  };
  const stop = await product.start(['api', 'worker'], config);
  const at = url();
  await until('readiness', async () => (await readiness(at)).status === 200);

  broker.refuse(true);
  broker.cut();
  const withoutBroker = await until('the broker to be missed', async () => {
    const answer = await readiness(at);
    return answer.status === 503 && answer.checks['broker'] !== 'ok' && answer;
  });
  expect(withoutBroker.checks).toMatchObject({ database: 'ok', broker: 'not connected' });
  expect(withoutBroker.checks['worker']).toContain('takes nothing from');
  broker.refuse(false);
  await until('readiness again', async () => (await readiness(at)).status === 200);

  database.refuse(true);
  database.cut();
  const withoutDatabase = await until('the database to be missed', async () => {
    const answer = await readiness(at);
    return answer.status === 503 && answer.checks['database'] !== 'ok' && answer;
  });
  expect(withoutDatabase.checks).toMatchObject({ broker: 'ok', database: 'does not answer' });
  expect(JSON.stringify(withoutDatabase)).not.toMatch(/127\.0\.0\.1|ECONN/);
  expect((await fetch(`${at}/healthz`)).status).toBe(200);
  database.refuse(false);
  await until('readiness again', async () => (await readiness(at)).status === 200);
  await stop();
  await database.close();
  await broker.close();
});

test('a queue that is gone makes its consumer unready', async () => {
  const stop = await product.start(['ingress']);
  const at = url();
  await until('readiness', async () => (await readiness(at)).status === 200);
  await withConnection(product.config.broker, 'test', async (connection) => {
    const channel = await connection.createChannel();
    await channel.deleteQueue(namesOf(product.config.broker.prefix).commandsQueue);
    await channel.close();
  });
  const answer = await until('the consumer to be missed', async () => {
    const found = await readiness(at);
    return found.status === 503 && found;
  });
  expect(answer.checks['ingress']).toContain('takes nothing from');
  await stop();
  await applyTopology(product.config.broker, product.recorded.log);
});

test('time zone data that is too old, and migrations that are missing, make a process unready', async () => {
  const stop = await product.start(['api'], { ...product.config, tz: { minimumVersion: '2999a' } });
  const at = url();
  expect((await readiness(at)).checks['time_zone_data']).toMatch(/2999a is the oldest/);
  await product.parts.pool.query(`update migration set name = '9999_newer' where name = '0007_feeding'`);
  const answer = await until('the migrations to be missed', async () => {
    const found = await readiness(at);
    return found.checks['migrations'] !== 'ok' && found;
  });
  expect(answer.status).toBe(503);
  await product.parts.pool.query(`update migration set name = '0007_feeding' where name = '9999_newer'`);
  await stop();
});

test('a request in hand is finished when the process stops', async () => {
  const stop = await product.start(['api']);
  const at = url();
  const lock = await product.parts.pool.connect();
  await lock.query('begin');
  await lock.query('lock table migration in access exclusive mode');
  const asked = fetch(`${at}/readyz`);
  await until('the question to wait', async () => {
    const { rows } = await product.parts.pool.query('select 1 from pg_locks where not granted');
    return rows.length > 0;
  });
  const stopped = stop();
  await lock.query('rollback');
  lock.release();
  expect((await asked).status).toBe(200);
  await stopped;
});
