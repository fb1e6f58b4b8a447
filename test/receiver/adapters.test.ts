import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import Fastify from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { expressReceiver } from '../../src/receiver/adapters/express.ts';
import { fastifyReceiver } from '../../src/receiver/adapters/fastify.ts';
import { nodeHttpReceiver } from '../../src/receiver/adapters/node-http.ts';
import { webReceiver } from '../../src/receiver/adapters/web.ts';
import type { ReceiverOptions } from '../../src/receiver/receive.ts';
import { createMemoryStore } from '../../src/receiver/store-memory.ts';
import { OTHER_SECRET, post, SECRET, signedCall } from './signed-call.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
}

/** What Express does for a route: its own request object, middleware in order, errors to the last. */
function expressLike(
  middleware: (request: IncomingMessage & { body?: unknown }) => Promise<void>,
  route: ReturnType<typeof expressReceiver>,
  errors: unknown[],
): RequestListener {
  return async (request: IncomingMessage, response: ServerResponse) => {
    await middleware(request);
    await route(request, response, (error) => {
      errors.push(error);
      response.writeHead(500).end();
    });
  };
}

async function readAll(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** Starts the adapter in its framework; `errors` collects what the framework was handed. */
type Start = (options: ReceiverOptions<undefined>, errors: unknown[]) => Promise<string>;

const FRAMEWORKS: Record<string, Start> = {
  'node:http': (options, errors) =>
    listen((request, response) => {
      void nodeHttpReceiver({ ...options, onError: (error) => errors.push(error) })(request, response);
    }),
  'Express without a parser': (options, errors) =>
    listen(expressLike(async () => {}, expressReceiver(options), errors)),
  'Express with express.raw()': (options, errors) =>
    listen(
      expressLike(
        async (request) => {
          request.body = await readAll(request);
        },
        expressReceiver(options),
        errors,
      ),
    ),
  Fastify: async (options, errors) => {
    const app = Fastify();
    app.setErrorHandler((error, _request, reply) => {
      errors.push(error);
      return reply.code((error as { statusCode?: number }).statusCode ?? 500).send();
    });
    await app.register(fastifyReceiver({ ...options, path: '/hook' }));
    app.post('/json', async (request) => request.body);
    await app.listen({ port: 0, host: '127.0.0.1' });
    closers.push(() => app.close());
    return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}/hook`;
  },
  'Web Request': (options, errors) => {
    const receiver = webReceiver(options);
    return listen(async (request, response) => {
      const body = new Uint8Array(await readAll(request));
      const headers = new Headers(request.headers as Record<string, string>);
      headers.delete('content-length');
      const answer = await receiver(
        new Request('http://127.0.0.1/hook', { method: 'POST', headers, body }),
      ).catch((error: unknown) => {
        errors.push(error);
        return new Response(null, { status: 500 });
      });
      response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
    });
  },
};

describe.each(Object.entries(FRAMEWORKS))('the adapter for %s', (_name, start) => {
  it('hands over the raw bytes, answers with headers and body, and replays them', async () => {
    const seen: string[] = [];
    const url = await start(
      {
        secret: [OTHER_SECRET, SECRET],
        store: createMemoryStore(),
        handle: async ({ body, key, deliveryId, attempt, json }) => {
          seen.push(`${key} ${deliveryId} ${attempt} ${Buffer.from(body).toString()}`);
          return { status: 201, headers: { 'webhook-receipt': 'rcpt-1' }, body: JSON.stringify(json()) };
        },
      },
      [],
    );
    const body = '{ "name" : "Zürich",\r\n "b":1.0 }';
    const first = await post(url, { key: 'k:1', webhookId: 'dlv_1', attempt: 3, body });
    expect([first.status, first.headers.get('webhook-receipt'), await first.text()]).toEqual([
      201,
      'rcpt-1',
      '{"name":"Zürich","b":1}',
    ]);
    expect(first.headers.has('idempotency-replayed')).toBe(false);

    const repeat = await post(url, { key: 'k:1', webhookId: 'dlv_1', attempt: 4, body });
    expect([repeat.status, repeat.headers.get('webhook-receipt')]).toEqual([201, 'rcpt-1']);
    expect(repeat.headers.get('idempotency-replayed')).toBe('true');
    expect(seen).toEqual([`k:1 dlv_1 3 ${body}`]);
  });

  it('answers refusals by name as problem+json', async () => {
    const url = await start(
      { secret: SECRET, store: createMemoryStore(), handle: async () => undefined },
      [],
    );
    const refusals = [
      { call: { key: 'k', secrets: [OTHER_SECRET] }, status: 401, code: 'no_matching_signature' },
      { call: { key: 'k', at: new Date(0) }, status: 401, code: 'timestamp_too_old' },
      { call: {}, status: 400, code: 'idempotency_key_missing' },
    ];
    for (const { call, status, code } of refusals) {
      const response = await post(url, call);
      expect(response.status).toBe(status);
      expect(response.headers.get('content-type')).toContain('application/problem+json');
      expect(await response.json()).toMatchObject({ status, code });
    }
    expect((await post(url, { key: 'k' })).status).toBe(204);
    expect((await post(url, { key: 'k', body: '{}' })).status).toBe(422);
  });

  it('answers 500 when the handler fails, passes the fault on, and runs it again', async () => {
    const errors: unknown[] = [];
    const fault = new Error('the database is away');
    let runs = 0;
    const url = await start(
      {
        secret: SECRET,
        store: createMemoryStore(),
        handle: async () => {
          runs += 1;
          if (runs === 1) throw fault;
          return undefined;
        },
      },
      errors,
    );
    expect((await post(url, { key: 'k' })).status).toBe(500);
    expect(errors).toEqual([fault]);
    expect((await post(url, { key: 'k', attempt: 2 })).status).toBe(204);
  });
});

describe('the adapters', () => {
  // What express.raw() let through was within a limit of its own.
  const readers = Object.entries(FRAMEWORKS).filter(([name]) => name !== 'Express with express.raw()');

  it.each(readers)('answer 413 to more than 2 MiB (%s)', async (_name, start) => {
    const options = { secret: SECRET, store: createMemoryStore(), handle: async () => undefined };
    const url = await start(options, []);
    const response = await post(url, { key: 'k', body: 'x'.repeat(2 * 1024 * 1024 + 1) });
    expect(response.status).toBe(413);
  });

  it('tell an Express application that parses before verifying what is wrong', async () => {
    const errors: unknown[] = [];
    const options = { secret: SECRET, store: createMemoryStore(), handle: async () => undefined };
    const parse = async (request: IncomingMessage & { body?: unknown }): Promise<void> => {
      request.body = JSON.parse(String(await readAll(request)));
    };
    const url = await listen(expressLike(parse, expressReceiver(options), errors));
    expect((await post(url, { key: 'k' })).status).toBe(500);
    expect(String(errors[0])).toContain('mount this route before express.json()');
  });

  it('leave the parsers of the rest of a Fastify application alone', async () => {
    const options = { secret: SECRET, store: createMemoryStore(), handle: async () => undefined };
    const url = await (FRAMEWORKS['Fastify'] as Start)(options, []);
    const response = await fetch(url.replace('/hook', '/json'), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"parsed":true}',
    });
    expect(await response.json()).toEqual({ parsed: true });
  });

  it('survive a caller who hangs up in the middle of the body', async () => {
    const errors: unknown[] = [];
    const options = { secret: SECRET, store: createMemoryStore(), handle: async () => undefined };
    const url = await (FRAMEWORKS['node:http'] as Start)(options, errors);
    const { headers } = signedCall({ key: 'k' });
    const aborted = new AbortController();
    const body = new ReadableStream({
      pull(controller) {
        controller.enqueue(new TextEncoder().encode('{"half":'));
        aborted.abort();
      },
    });
    const init = { method: 'POST', headers, body, duplex: 'half', signal: aborted.signal } as RequestInit;
    await expect(fetch(url, init)).rejects.toThrow();
    expect((await post(url, { key: 'k' })).status).toBe(204);
  });
});
