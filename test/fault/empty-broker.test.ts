import { afterAll, beforeAll, expect, test } from 'vitest';
import { namesOf } from '../../src/broker/topology.ts';
import { applyTopology } from '../../src/broker/topology-apply.ts';
import { targetOf, throughPort } from '../support/broker.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { startProxy } from '../support/proxy.ts';
import { recordLog } from '../support/recorded-log.ts';
import { until } from '../support/until.ts';

let product: TestProduct;

beforeAll(async () => {
  product = await openTestProduct();
});

afterAll(() => product.close());

test('a broker that is away and comes back empty: said once, with what to run, and over once that was run', async () => {
  const broker = await startProxy(targetOf(product.config.broker));
  const config = {
    ...product.config,
    broker: throughPort(product.config.broker, broker.port) as typeof product.config.broker,
    reconciler: { ...product.config.reconciler, intervalMs: 50 },
  };
  const stop = await product.start(['api', 'ingress', 'worker', 'reconciler'], config);
  const { lines } = product.recorded;
  const at = String(lines.findLast((line) => line.event === 'http_listening')?.fields['url']);
  const count = (event: string): number => lines.filter((line) => line.event === event).length;
  const readyz = async () => {
    const response = await fetch(`${at}/readyz`);
    return { status: response.status, ...((await response.json()) as { checks: Record<string, string> }) };
  };
  const told = (check: string, reason: string) =>
    lines.filter(({ event, fields }) => event === 'not_ready' && fields[check] === reason);
  await until('readiness', async () => (await readyz()).status === 200);

  broker.refuse(true);
  broker.cut();
  await until('the loss to be told', () => told('broker', 'not connected').length > 0);
  await until('a failed pass', () => count('observe_failed') > 0);
  await product.broker.close();
  broker.refuse(false);

  const queue = namesOf(config.broker.prefix).deliveries;
  const reason = `the queue ${queue} is missing: run duepost topology apply`;
  await until('the topology to be missed', async () => {
    const { status, checks } = await readyz();
    return status === 503 && checks['broker'] === 'ok' && checks['topology'] === reason;
  });
  await until('the empty broker to be told', () => told('topology', reason).length > 0);
  await applyTopology(product.config.broker, recordLog().log);
  await until('readiness again', async () => (await readyz()).status === 200);
  await until('its end to be told', () => count('ready') === 1 && count('observe_resumed') === 1);
  await stop();
  await broker.close();

  expect([count('observe_failed'), count('observe_resumed')]).toEqual([1, 1]);
  const counts = lines.filter(({ event }) => event.endsWith('_failed')).map(({ event }) => count(event));
  expect(Math.max(...counts)).toBe(1);
  expect(lines.filter(({ level }) => level === 'error')).toEqual([]);
});
