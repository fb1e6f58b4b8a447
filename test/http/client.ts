import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { expect } from 'vitest';
import { createKey } from '../../src/pipeline/operate/keys.ts';
import type { Config } from '../../src/runtime/config.ts';
import type { Stop } from '../../src/runtime/scope.ts';
import type { Scope } from '../../src/store/keys.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';

/** What a program finds in JSON: anything. */
type Json = ReturnType<typeof JSON.parse>;

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Json;
}

export interface CallOptions {
  readonly body?: unknown;
  /** As it is, instead of `body`. */
  readonly raw?: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** Instead of the admin's; empty: none. */
  readonly key?: string;
}

/** The product with its API over real HTTP. */
export interface TestApi {
  readonly product: TestProduct;
  readonly url: string;
  readonly adminKey: string;
  /** The document that the server gives. */
  readonly document: Json;
  /** Calls, and holds the answer against the document: its status, its content type and every member of it. */
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  createKey(scopes: readonly Scope[], expiresAt?: Date): Promise<string>;
  /** Starts one more process with the API; `config` changes what it runs with. */
  startAnother(config: Config): Promise<{ readonly url: string; readonly stop: Stop }>;
  close(): Promise<void>;
}

/** Opens the product with the api role, and those given. */
export async function openTestApi(
  options: Parameters<typeof openTestProduct>[0] & object = {},
): Promise<TestApi> {
  const product = await openTestProduct({ ...options, roles: ['api', ...(options.roles ?? [])] });
  const url = lastUrl(product);
  const names = new Set<string>();
  const makeKey = async (scopes: readonly Scope[], expiresAt?: Date): Promise<string> => {
    const taken = names.has(scopes.join('-')) ? [names.size] : [];
    const name = [...scopes, ...taken].join('-');
    names.add(name);
    const request = { name, scopes, ...(expiresAt === undefined ? {} : { expiresAt }) };
    return (await createKey(product.parts.pool, request, { actor: 'test' })).key;
  };
  const adminKey = await makeKey(['admin']);
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as Json;
  const judge = createJudge(document);
  return {
    product,
    url,
    adminKey,
    document,
    createKey: makeKey,
    async call(method, path, { body, raw, headers = {}, key = adminKey } = {}) {
      const sent = raw ?? (body === undefined ? undefined : JSON.stringify(body));
      const response = await fetch(url + path, {
        method,
        headers: {
          ...(key === '' ? {} : { authorization: `Bearer ${key}` }),
          ...(sent === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(sent === undefined ? {} : { body: sent as string }),
      });
      const text = await response.text();
      const isJson = /json/.test(response.headers.get('content-type') ?? '');
      const answer = {
        status: response.status,
        headers: response.headers,
        text,
        body: isJson && text !== '' ? (JSON.parse(text) as Json) : {},
      };
      judge(method, path, answer);
      return answer;
    },
    async startAnother(config) {
      const stop = await product.start(['api'], config);
      return { url: lastUrl(product), stop };
    },
    close: () => product.close(),
  };
}

function lastUrl(product: TestProduct): string {
  return product.recorded.lines.findLast((line) => line.event === 'http_listening')?.fields['url'] as string;
}

/** Refuses answers that the document does not describe. */
function createJudge(document: Json): (method: string, path: string, answer: Answer) => void {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  ajv.addSchema(closed({ $id: 'document', components: document['components'] }));
  return (method, path, { status, headers, body, text }) => {
    const operation = findOperation(document, method, path);
    if (operation === undefined) {
      expect(status, `${method} ${path} is not documented`).toBeOneOf([404, 405]);
      return;
    }
    const response = resolveLocal(document, operation['responses'][status]);
    expect(response, `${method} ${path} answered ${status}: ${text}`).toBeDefined();
    const [type, content] = Object.entries<Json>(response.content ?? {})[0] ?? [];
    if (type === undefined) {
      expect(text).toBe('');
      return;
    }
    expect(headers.get('content-type')).toContain(type);
    if (!type.includes('json')) return;
    const schema = closed(JSON.parse(JSON.stringify(content?.['schema']).replaceAll('"#/', '"document#/')));
    const isValid = ajv.validate(schema, body);
    expect(isValid, `${method} ${path} ${status}: ${ajv.errorsText()}\n${text}`).toBe(true);
    if (status < 400 || type === 'application/json') return;
    const codes = Object.keys(content?.['examples'] ?? {});
    expect(codes, `${method} ${path} may answer ${status} ${body.code}`).toContain(body.code);
  };
}

/** What a local reference leads to; anything else is given back. */
export function resolveLocal(document: Json, value: Json): Json {
  const reference: unknown = value?.$ref;
  if (typeof reference !== 'string') return value;
  return reference
    .slice(2)
    .split('/')
    .reduce((at, name) => at[name], document);
}

export function findOperation(document: Json, method: string, path: string): Json {
  const segments = (path.split('?', 1)[0] ?? '').split('/');
  const templates = Object.keys(document['paths'])
    .filter((template) => {
      const parts = template.split('/');
      return (
        parts.length === segments.length &&
        parts.every((part, i) => part === segments[i] || (part.startsWith('{') && segments[i] !== ''))
      );
    })
    .sort((a, b) => a.split('{').length - b.split('{').length);
  return templates.map((t) => document['paths'][t][method.toLowerCase()]).find((o) => o !== undefined);
}

/** Documented answers are open; in tests a member that is not documented is a mistake. */
function closed(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const inner = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, closed(value)]));
  const isWhole = 'properties' in inner && !('additionalProperties' in inner) && !('oneOf' in inner);
  return inner['type'] === 'object' && isWhole ? { ...inner, additionalProperties: false } : inner;
}
