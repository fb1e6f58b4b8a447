import { afterAll, beforeAll, expect, test } from 'vitest';
import { namesOf } from '../../src/broker/topology.ts';
import { formatOverview, overviewView } from '../../src/cli/top/view.ts';
import { watchOverviews } from '../../src/cli/top/watch.ts';
import { type Overview, openOverviews } from '../../src/pipeline/reconcile/overview.ts';
import { openPool } from '../../src/store/pool.ts';
import { openWayToDatabase } from '../fault/support/cut-off.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { recordLog } from '../support/recorded-log.ts';
import { until } from '../support/until.ts';

let product: TestProduct;
let overview: Overview;

beforeAll(async () => {
  product = await openTestProduct();
  const { pool, publisher } = product.parts;
  const overviews = await openOverviews({ pool, publisher, names: namesOf(product.config.broker.prefix) });
  await product.endpoints.create({ name: 'well', url: 'http://127.0.0.1:8081/' }, { actor: 'test' });
  const { endpoint } = await product.endpoints.create(
    { name: 'broken', url: 'http://127.0.0.1:8081/' },
    { actor: 'test' },
  );
  await product.events.publish({
    idempotencyKey: 'k',
    type: 'order.created',
    payload: {},
    endpoint: 'broken',
    contractRef: 'pol-7781',
    deliverAt: undefined,
    deadlineAt: new Date(Date.now() + 5_400_000),
    actor: 'test',
  });
  await product.parts.announcer.drain();
  await pool.query('update endpoint set consecutive_failures = 6 where endpoint_id = $1', [
    endpoint.endpointId,
  ]);
  await pool.query('update delivery set at_risk_at = now()');
  overview = await overviews.take();
});

afterAll(() => product.close());

test('tells states, queues, endpoints in trouble and what is at risk, for programs', () => {
  expect(overviewView(overview)).toMatchObject({
    states: { due: 1, delivered: 0 },
    states_estimated: false,
    overdue: 1,
    endpoints: { ok: 1, failing: 1 },
    endpoints_in_trouble: [{ name: 'broken', status: 'active', consecutive_failures: 6 }],
    at_risk: 1,
    at_risk_next: [{ contract_ref: 'pol-7781', endpoint: 'broken', state: 'due' }],
    queues: expect.arrayContaining([{ queue: 'deliveries', ready: 1, consumers: 0 }]),
  });
});

test('tells the same to people, the nearest deadline with what is left of it', () => {
  const text = formatOverview(overview);
  expect(text).toMatch(/oldest due 0\.0 s, at failing endpoints \d\.\d s; overdue 1/);
  expect(text).toMatch(/^deliveries +1 +0$/m);
  expect(text).toMatch(/^broken +active +6 +ep_/m);
  expect(text).toMatch(/1 h (29|30) min +pol-7781 +due +broken +dlv_/);
});

test('a broker that does not answer hides only its queues', async () => {
  const { pool } = product.parts;
  const blind = await openOverviews({ pool, publisher: undefined, names: namesOf('x') });
  const seen = await blind.take();
  expect(overviewView(seen)).toMatchObject({ states: { due: 1 }, queues: null });
  expect(formatOverview(seen)).toContain('the broker does not answer');
});

test('tells at what rate things are accepted', async () => {
  const overviews = await openOverviews({
    pool: product.parts.pool,
    publisher: undefined,
    names: namesOf('x'),
  });
  await product.events.publish({
    idempotencyKey: 'k2',
    type: 'order.created',
    payload: {},
    endpoint: 'well',
    contractRef: undefined,
    deliverAt: undefined,
    deadlineAt: undefined,
    actor: 'test',
  });
  await until('a rate', async () => (await overviews.take()).rates.accepted > 0);
});

test('goes on through an outage of the database, with the last overview, its age and the reason', async () => {
  const { proxy, config } = await openWayToDatabase(product);
  const pool = openPool(config.database, recordLog().log);
  const overviews = await openOverviews({ pool, publisher: undefined, names: namesOf('x') });
  const shown: string[] = [];
  const interrupted = new AbortController();
  const watching = watchOverviews(overviews, {
    refreshMs: 20,
    signal: interrupted.signal,
    show: (taken, stale) => shown.push(formatOverview(taken, stale)),
  });
  const isStale = (text: string | undefined): boolean => /^\d+\.\d s ago; none since: \S/m.test(text ?? '');
  await until('an overview', () => shown.length > 0);
  expect(isStale(shown[0])).toBe(false);
  proxy.refuse(true);
  proxy.cut();
  await until('the last one with the reason', () => isStale(shown.at(-1)));
  expect(shown.at(-1)).toContain('at risk: 1');
  proxy.refuse(false);
  await until('a new one', () => !isStale(shown.at(-1)));
  interrupted.abort();
  await watching;
  await pool.end();
  await proxy.close();
});
