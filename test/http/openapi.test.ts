import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packageRoot } from '../../src/runtime/build-info.ts';
import { openTestApi, type TestApi } from './client.ts';

let api: TestApi;

beforeAll(async () => {
  api = await openTestApi();
});

afterAll(() => api.close());

interface Operation {
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
    expect(operation.security, call).toEqual(call.includes('/v1/') ? [{ key: [] }] : undefined);
    for (const [status, { description }] of Object.entries(operation.responses)) {
      expect(description, `${call} ${status}`).not.toBe('Default Response');
    }
  }
});

test('every reference in the document leads somewhere', () => {
  const names = Object.keys(api.document['components'].schemas);
  const references = [...JSON.stringify(api.document).matchAll(/"\$ref":"([^"]+)"/g)].map((m) => m[1]);
  expect(references.length).toBeGreaterThan(40);
  for (const reference of references) {
    expect(names).toContain(reference?.replace('#/components/schemas/', ''));
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
