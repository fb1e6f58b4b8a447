import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packageRoot } from '../../src/runtime/build-info.ts';
import { openTestApi, resolveLocal, type TestApi } from './client.ts';

let api: TestApi;

beforeAll(async () => {
  api = await openTestApi();
});

afterAll(() => api.close());

interface Parameter {
  readonly name: string;
  readonly description?: string;
}

interface Operation {
  readonly parameters?: readonly Parameter[];
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly security?: unknown;
  readonly requestBody?: { readonly required: boolean };
  readonly responses: Readonly<Record<string, { readonly description: string }>>;
}

function operations(): [string, Operation][] {
  return Object.entries<Record<string, Operation>>(api.document['paths']).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, operation]) => [`${method.toUpperCase()} ${path}`, operation] as [string, Operation],
    ),
  );
}

test('the document is the one in docs/openapi.json', async () => {
  // After a change of the API: npx vitest run test/http/openapi.test.ts -u
  const text = `${JSON.stringify(api.document, undefined, 2)}\n`;
  await expect(text).toMatchFileSnapshot(join(packageRoot, 'docs/openapi.json'));
});

test('every call of the contract is documented', () => {
  expect(operations().map(([call]) => call)).toEqual(
    expect.arrayContaining([
      'POST /v1/reminders',
      'GET /v1/reminders',
      'GET /v1/reminders/{id}',
      'PATCH /v1/reminders/{id}',
      'POST /v1/reminders/{id}/cancel',
      'POST /v1/events',
      'POST /v1/events/batch',
      'GET /v1/events/{id}',
      'POST /v1/endpoints',
      'GET /v1/endpoints',
      'GET /v1/endpoints/{endpoint}',
      'PATCH /v1/endpoints/{endpoint}',
      'DELETE /v1/endpoints/{endpoint}',
      'POST /v1/endpoints/{endpoint}/pause',
      'POST /v1/endpoints/{endpoint}/resume',
      'POST /v1/endpoints/{endpoint}/rotate-secret',
      'POST /v1/endpoints/{endpoint}/test',
      'GET /v1/deliveries',
      'GET /v1/deliveries/{id}',
      'POST /v1/deliveries/{id}/retry',
      'POST /v1/deliveries/{id}/cancel',
      'GET /v1/dead-letters',
      'POST /v1/dead-letters/replay',
      'GET /v1/audit',
      'GET /v1/audit/{id}/evidence',
      'POST /v1/calendars/explain',
      'GET /v1/calendars/{jurisdiction}',
      'GET /v1/shadow/report',
      'GET /healthz',
      'GET /readyz',
      'GET /metrics',
      'GET /openapi.json',
    ]),
  );
});

test('every call has a name of its own, a summary, a tag and answers; those of the API need a key', () => {
  const names = operations().map(([, { operationId }]) => operationId);
  expect(new Set(names).size).toBe(names.length);
  const tags = api.document['tags'].map((t: { name: string }) => t.name);
  for (const [call, operation] of operations()) {
    expect(operation.operationId, call).toMatch(/^[a-z][A-Za-z]+$/);
    expect(operation.summary, call).not.toBe('');
    expect(tags, call).toContain(operation.tags[0]);
    expect(operation.security, call).toEqual(call.includes('/v1/') ? [{ key: [] }] : []);
    for (const [status, response] of Object.entries(operation.responses)) {
      const { description } = resolveLocal(api.document, response);
      expect(description, `${call} ${status}`).not.toBe('Default Response');
    }
  }
});

test('a call of the API says what it may be refused for; one without a key does not ask for it', () => {
  for (const [call, { responses, requestBody }] of operations()) {
    const usual = call.includes('/v1/') ? ['400', '401', '403', '429', '500', '503'] : [];
    const ofBody = requestBody === undefined ? [] : ['413', '415'];
    const ofId = /\{(id|endpoint)\}/.test(call) ? ['404'] : [];
    expect(Object.keys(responses), call).toEqual(expect.arrayContaining([...usual, ...ofBody, ...ofId]));
    for (const [status, response] of Object.entries(responses)) {
      if (Number(status) < 400 || !call.includes('/v1/')) continue;
      const { content } = resolveLocal(api.document, response);
      expect(Object.keys(content), `${call} ${status}`).toEqual(['application/problem+json']);
    }
  }
});

test('every parameter is described', () => {
  const silent = operations().flatMap(([call, { parameters = [] }]) =>
    parameters.filter((p) => (p.description ?? '') === '').map((p) => `${call} ${p.name}`),
  );
  expect(silent).toEqual([]);
});

test('nothing in an answer is left untyped but what a producer or receiver decides', () => {
  const { schemas } = api.document['components'];
  const empty = [...JSON.stringify(schemas).matchAll(/"([^"]+)":\{\}/g)].map(([, name]) => name);
  expect(empty).toEqual([]);
});

test('what is answered is what the document says, down to proofs, policies and evidence', async () => {
  const { body: endpoint } = await api.call('POST', '/v1/endpoints', {
    body: { name: 'proved', url: 'http://127.0.0.1:8017/', policy: { kind: 'deadline', divisor: 3 } },
  });
  const timing = { renewal_date: '2031-03-31', notice_period: 'P30D', jurisdiction: 'DE-BY' };
  const { body: reminder } = await api.call('POST', '/v1/reminders', {
    body: { idempotency_key: 'proved', contract_ref: 'pol-proved', endpoint: 'proved', ...timing },
  });
  const { body: explanation } = await api.call('POST', '/v1/calendars/explain', { body: timing });
  await api.call('DELETE', '/v1/endpoints/proved');
  const { body: delivery } = await api.call('GET', `/v1/deliveries/${reminder.delivery_id}`);
  const { body: deadLetters } = await api.call('GET', '/v1/dead-letters');
  const { body: bundle } = await api.call('GET', `/v1/audit/${reminder.delivery_id}/evidence`);

  const ajv = new Ajv2020({ strict: false, discriminator: true });
  addFormats.default(ajv);
  ajv.addSchema({ $id: 'document', components: api.document['components'] });
  const fits = (name: string, value: unknown) => ajv.validate(`document#/components/schemas/${name}`, value);
  const answers: [string, object, (answer: Record<string, never>) => unknown][] = [
    ['Endpoint', endpoint, (e) => delete e['policy']!['divisor']],
    ['Reminder', reminder, (r) => delete r['due_proof']!['steps']],
    ['Explanation', explanation, (e) => delete e['proof']!['calendar_sha256']],
    ['DeliveryWithAttempts', delivery, (d) => delete d['attempts']],
    ['DeadLetter', deadLetters.data[0], (d) => Object.assign(d, { dead_reason: 'bored' })],
    ['EvidenceBundle', bundle, (b) => delete b['deliveries']![0]!['trail']],
  ];
  for (const [name, value, spoil] of answers) {
    expect(fits(name, value), `${name}: ${ajv.errorsText()}`).toBe(true);
    spoil(value as Record<string, never>);
    expect(fits(name, value), `${name} takes anything`).toBe(false);
  }
});

test('every example is one that its schema takes', () => {
  const ajv = new Ajv2020({ strict: false, discriminator: true });
  addFormats.default(ajv);
  ajv.addSchema({ $id: 'document', components: api.document['components'] });
  const schemas = Object.entries<{ examples?: unknown[] }>(api.document['components'].schemas);
  const examples = schemas.flatMap(([name, { examples = [] }]) => examples.map((e) => ({ name, e })));
  expect(examples.length).toBeGreaterThan(8);
  for (const { name, e } of examples) {
    expect(ajv.validate(`document#/components/schemas/${name}`, e), `${name} ${ajv.errorsText()}`).toBe(true);
  }
});

test('it says under which license, where, and what an endpoint is called with', () => {
  const { info, servers, webhooks } = api.document;
  expect(info.license).toEqual({ name: 'MIT', identifier: 'MIT' });
  expect(servers[0].url).toBe('/');
  const headers = webhooks.event.post.parameters.map((p: Parameter) => p.name);
  expect(headers).toEqual(
    expect.arrayContaining(['Idempotency-Key', 'webhook-id', 'webhook-signature', 'X-Signature-256']),
  );
});

test('every reference in the document leads somewhere', () => {
  const references = [...JSON.stringify(api.document).matchAll(/"\$ref":"([^"]+)"/g)].map((m) => m[1]);
  expect(references.length).toBeGreaterThan(40);
  for (const reference of references) {
    expect(resolveLocal(api.document, { $ref: reference }), reference).toBeDefined();
  }
});

test('a body may be left out where nothing in it is required, and only there', () => {
  const optional = operations()
    .filter(([, operation]) => operation.requestBody?.required === false)
    .map(([call]) => call);
  expect(optional.sort()).toEqual([
    'POST /v1/deliveries/{id}/cancel',
    'POST /v1/deliveries/{id}/retry',
    'POST /v1/endpoints/{endpoint}/pause',
    'POST /v1/endpoints/{endpoint}/resume',
    'POST /v1/endpoints/{endpoint}/rotate-secret',
  ]);
});
