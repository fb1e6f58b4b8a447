import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { openTelemetry } from '../../src/runtime/telemetry.ts';
import { recordLog } from '../support/recorded-log.ts';
import { until } from '../support/until.ts';
import { parseExposition, valueOf } from './exposition.ts';

const OFF = { traces: 'off', sampleRatio: 1, traceparent: false } as const;

const closing: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

function open(config: Parameters<typeof openTelemetry>[0] = OFF) {
  const telemetry = openTelemetry(config, recordLog().log);
  closing.push(() => telemetry.close());
  return telemetry;
}

test('tells versions, and that of the time zone data, as labels', async () => {
  const samples = parseExposition(await open().metricsText());
  const labels = { node: process.versions.node, tz: process.versions.tz ?? '' };
  expect(valueOf(samples, 'duepost_build_info', labels)).toBe(1);
});

test('series that alerts wait for are there at 0 before anything happens', async () => {
  const { meters, metricsText } = open();
  meters.counter('duepost_deadlines_missed_total');
  const failed = meters.counter('duepost_deliveries_ended_total');
  failed(['dead_lettered', 'endpoint_gone']);
  const samples = parseExposition(await metricsText());
  expect(valueOf(samples, 'duepost_deadlines_missed_total')).toBe(0);
  const read = (reason: string) => valueOf(samples, 'duepost_deliveries_ended_total', { reason });
  expect([read('endpoint_gone'), read('terminal_response')]).toEqual([1, 0]);
});

test('what several roles of a process count under one name is one number', async () => {
  const { meters, metricsText } = open();
  meters.counter('duepost_wakeups_total')(['claimed'], 2);
  meters.counter('duepost_wakeups_total')(['claimed'], 3);
  meters.source('duepost_publisher_ready', () => [[[], 1]]);
  meters.source('duepost_publisher_ready', () => [[[], 0]]);
  meters.source('duepost_database_pool_waiting', () => [[[], 1]]);
  meters.source('duepost_database_pool_waiting', () => [[[], 4]]);
  const samples = parseExposition(await metricsText());
  expect(valueOf(samples, 'duepost_wakeups_total', { verdict: 'claimed' })).toBe(5);
  expect(valueOf(samples, 'duepost_publisher_ready')).toBe(0);
  expect(valueOf(samples, 'duepost_database_pool_waiting')).toBe(5);
});

test('a histogram has the buckets of its specification', async () => {
  const { meters, metricsText } = open();
  const record = meters.histogram('duepost_attempt_duration_seconds');
  for (const seconds of [0.003, 0.2, 7, 500]) record(seconds);
  const samples = parseExposition(await metricsText());
  const upTo = (le: string) => valueOf(samples, 'duepost_attempt_duration_seconds_bucket', { le });
  expect([upTo('0.005'), upTo('0.25'), upTo('10'), upTo('+Inf')]).toEqual([1, 2, 3, 4]);
});

test('sends the same metrics to an OTLP collector when it closes at the latest', async () => {
  const bodies: { path: string | undefined; body: string }[] = [];
  const collector = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += String(chunk);
    });
    request.on('end', () => {
      bodies.push({ path: request.url, body });
      response.end('{}');
    });
  });
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
  closing.push(() => new Promise((resolve) => collector.close(resolve)));
  const { port } = collector.address() as AddressInfo;

  const telemetry = open({ ...OFF, otlpEndpoint: `http://127.0.0.1:${port}/` });
  telemetry.meters.counter('duepost_fed_total')([], 7);
  await telemetry.close();

  const sent = await until('an export', () => bodies[0]);
  expect(sent.path).toBe('/v1/metrics');
  expect(sent.body).toContain('duepost_fed_total');
  expect(sent.body).toContain('service.instance.id');
});

test('a collector that is away hurts nobody', async () => {
  const { log, lines } = recordLog();
  const telemetry = openTelemetry({ ...OFF, otlpEndpoint: 'http://127.0.0.1:1' }, log);
  await telemetry.close();
  expect(lines.filter((line) => line.level === 'error')).toEqual([]);
});
