import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { namesOf } from '../../src/broker/topology.ts';
import { startRoles } from '../../src/roles/all.ts';
import { readTraceParent } from '../../src/runtime/traces.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';

interface ExportedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly status: { readonly code?: number; readonly message?: string };
  readonly attributes: readonly { readonly key: string; readonly value: Record<string, unknown> }[];
}

let collector: Server;
let product: TestProduct;
let endpointServer: Server;
const spans: ExportedSpan[] = [];
const seenByEndpoint: (string | undefined)[] = [];

beforeAll(async () => {
  collector = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += String(chunk);
    });
    request.on('end', () => {
      if (request.url === '/v1/traces') spans.push(...spansOf(JSON.parse(body)));
      response.end('{}');
    });
  });
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
  endpointServer = createServer((request, response) => {
    seenByEndpoint.push(request.headers['traceparent'] as string | undefined);
    request.resume().on('end', () => response.writeHead(seenByEndpoint.length === 1 ? 503 : 200).end());
  });
  await new Promise<void>((resolve) => endpointServer.listen(0, '127.0.0.1', resolve));
  const { port } = collector.address() as AddressInfo;
  product = await openTestProduct({
    env: {
      DUEPOST_TELEMETRY_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      DUEPOST_TELEMETRY_TRACES: 'otlp',
      DUEPOST_TELEMETRY_TRACEPARENT: 'true',
    },
  });
  await product.endpoints.create(
    {
      name: 'customer-notices',
      url: `http://127.0.0.1:${(endpointServer.address() as AddressInfo).port}/`,
      policy: { kind: 'schedule', retry_schedule: [0, 1], max_attempts: 3 },
    },
    { actor: 'test' },
  );
});

afterAll(async () => {
  await product.close();
  endpointServer.close();
  collector.close();
});

function spansOf(body: { resourceSpans: { scopeSpans: { spans: ExportedSpan[] }[] }[] }): ExportedSpan[] {
  return body.resourceSpans.flatMap((r) => r.scopeSpans.flatMap((s) => s.spans));
}

async function command(traceParent: string | undefined, key: string): Promise<void> {
  await product.parts.publisher.publish({
    exchange: namesOf(product.config.broker.prefix).commands,
    routingKey: 'event.publish',
    ...(traceParent === undefined ? {} : { headers: { traceparent: traceParent } }),
    body: Buffer.from(
      JSON.stringify({
        v: 1,
        type: 'order.created',
        idempotency_key: key,
        endpoint: 'customer-notices',
        payload: {},
      }),
    ),
  });
}

test('one trace holds the command, the claim, the call and the settling of both attempts, across processes', async () => {
  const traceId = randomBytes(16).toString('hex');
  const callerSpanId = randomBytes(8).toString('hex');
  // Apart, as three processes are: what they share is the row and the message.
  const stops = [
    await product.start(['ingress']),
    await product.start(['worker']),
    await product.start(['reconciler']),
  ];
  await command(`00-${traceId}-${callerSpanId}-01`, 'traced');
  await until('the delivery', () => seenByEndpoint.length === 2);
  await until('the settling', async () => {
    const found = await product.parts.pool.query("select from delivery where state = 'delivered'");
    return found.rowCount === 1;
  });
  for (const stop of stops) await stop();

  const mine = spans.filter((span) => span.traceId === traceId);
  const root = mine.find((span) => span.name === 'command event.publish');
  expect(root?.parentSpanId).toBe(callerSpanId);
  const attempts = mine.filter((span) => span.name === 'deliver');
  expect(attempts.map((span) => [span.parentSpanId, span.status.message])).toEqual([
    [root?.spanId, 'retryable'],
    [root?.spanId, undefined],
  ]);
  for (const attempt of attempts) {
    const parts = mine.filter((span) => span.parentSpanId === attempt.spanId);
    expect(parts.map((span) => span.name).toSorted()).toEqual(['call', 'claim', 'settle']);
  }
  const calls = mine.filter((span) => span.name === 'call');
  expect(calls.map((span) => span.status.message)).toEqual(['503', undefined]);
  // The endpoint is told the span of its own call.
  expect(seenByEndpoint).toEqual(calls.map((span) => `00-${traceId}-${span.spanId}-01`));

  const row = await product.parts.pool.query('select trace_parent from delivery');
  expect(row.rows).toEqual([{ trace_parent: `00-${traceId}-${root?.spanId}-01` }]);
  const line = product.recorded.lines.find(
    (l) => l.event === 'attempt' && l.fields['outcome'] === 'delivered',
  );
  expect(line?.fields['trace_id']).toBe(traceId);
});

test('a caller who does not sample is followed: nothing is sent, and everybody downstream is told so', async () => {
  const traceId = randomBytes(16).toString('hex');
  const stop = await product.start(['ingress', 'worker', 'reconciler']);
  const before = seenByEndpoint.length;
  await command(`00-${traceId}-${randomBytes(8).toString('hex')}-00`, 'unsampled');
  await until('the call', () => seenByEndpoint.length > before);
  await stop();
  expect(spans.filter((span) => span.traceId === traceId)).toEqual([]);
  expect(seenByEndpoint.at(-1)).toMatch(new RegExp(`^00-${traceId}-[0-9a-f]{16}-00$`));
});

test('a refused command is an error in its trace, by its code', async () => {
  const traceId = randomBytes(16).toString('hex');
  const stop = await product.start(['ingress']);
  await product.parts.publisher.publish({
    exchange: namesOf(product.config.broker.prefix).commands,
    routingKey: 'event.publish',
    headers: { traceparent: `00-${traceId}-${randomBytes(8).toString('hex')}-01` },
    body: Buffer.from('{"v":7}'),
  });
  await until('the refusal', () => product.recorded.lines.some((line) => line.event === 'command_rejected'));
  await stop();
  expect(spans.find((span) => span.traceId === traceId)?.status.message).toBe('unsupported_version');
});

test('a request over HTTP goes on with the trace of its caller', async () => {
  const traceId = randomBytes(16).toString('hex');
  const callerSpanId = randomBytes(8).toString('hex');
  const running = await startRoles(['api'], product.config, product.recorded.log);
  const headers = { traceparent: `00-${traceId}-${callerSpanId}-01` };
  const response = await fetch(new URL('/v1/deliveries', running.httpUrl), { headers });
  await response.text();
  await running();
  expect(spans.find((span) => span.traceId === traceId)).toMatchObject({
    name: 'GET /v1/deliveries',
    parentSpanId: callerSpanId,
    attributes: expect.arrayContaining([
      { key: 'http.response.status_code', value: { intValue: response.status } },
    ]),
  });
});

test.each([
  'garbage',
  `00-${'0'.repeat(32)}-${'1'.repeat(16)}-01`,
  `00-${'1'.repeat(32)}-${'0'.repeat(16)}-01`,
  `ff-${'1'.repeat(32)}-${'1'.repeat(16)}-01`,
  7,
  undefined,
])('%s is no traceparent', (text) => {
  expect(readTraceParent(text)).toBeUndefined();
});
