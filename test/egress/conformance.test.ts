import { createHash } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import { type Egress, type EgressConfig, openEgress } from '../../src/egress/open.ts';
import type { Answer, Call } from '../../src/egress/send.ts';
import { closed, closePeers, openPeer, openRawPeer, respond, response } from './peers.ts';

const BODY = Buffer.from('{"type":"order.created","data":{"id":10241}}');
const OK = response('200 OK', [], 'ok');

describe.each(['node-fetch', 'undici'] as const)('calls through %s', (client) => {
  const opened: Egress[] = [];

  function open(config: Partial<EgressConfig> = {}): (url: string, call?: Partial<Call>) => Promise<Answer> {
    const egress = openEgress({ client, allow: ['127.0.0.0/8'], allowHttp: true, ...config });
    opened.push(egress);
    return (url, call = {}) =>
      egress.send({
        url,
        headers: { 'Idempotency-Key': 'ord_10241' },
        body: BODY,
        timeoutMs: 5_000,
        ...call,
      });
  }

  afterEach(async () => {
    for (const egress of opened.splice(0)) await egress.close();
    await closePeers();
  });

  describe('what is sent', () => {
    it('posts the very bytes and headers, and asks for no compression', async () => {
      const peer = await openPeer(respond(OK));
      const answer = await open()(`${peer.url}?x=1`, {
        headers: { 'Content-Type': 'application/json', 'X-Team': 'a b' },
      });
      expect(answer).toMatchObject({ sent: true, status: 200 });
      const [text = ''] = peer.requests;
      expect(text.startsWith('POST /hook?x=1 HTTP/1.1\r\n')).toBe(true);
      const head = text.toLowerCase();
      expect(head).toContain(`\r\nhost: 127.0.0.1:${peer.port}\r\n`);
      expect(head).toContain('\r\naccept-encoding: identity\r\n');
      expect(head).toContain('\r\ncontent-type: application/json\r\n');
      expect(head).toContain('\r\nx-team: a b\r\n');
      expect(head).toContain(`\r\ncontent-length: ${BODY.length}\r\n`);
      expect(head).not.toContain('transfer-encoding');
      expect(text.endsWith(`\r\n\r\n${BODY.toString()}`)).toBe(true);
    });

    it('keeps the connection for the next call', async () => {
      const peer = await openPeer(respond(OK));
      const send = open();
      for (let i = 0; i < 5; i += 1) expect(await send(peer.url)).toMatchObject({ status: 200 });
      expect(peer.connections.length).toBe(1);
      expect(peer.requests.length).toBe(5);
    });

    it.each([
      ['a\r\nX-Injected: 1', 'X-Team'],
      ['a\n', 'X-Team'],
      ['a—b', 'X-Team'],
      ['café', 'X-Team'],
      ['x', 'X Team'],
      ['x', 'X-Team\r\nX-Injected'],
    ])(
      'refuses to send the header value %j under the name %j, and others keep flowing',
      async (value, name) => {
        const peer = await openPeer(respond(OK));
        const send = open();
        const answer = await send(peer.url, { headers: { [name]: value } });
        expect(answer).toMatchObject({ sent: false, error: 'invalid_request' });
        expect(answer.detail).not.toMatch(/[\r\n]/);
        expect(answer.detail).toContain('header "X');
        expect(await send(peer.url)).toMatchObject({ status: 200 });
        expect(peer.requests.length).toBe(1);
      },
    );
  });

  describe('what is recorded', () => {
    it('records address, headers, and the body with its hash', async () => {
      const peer = await openPeer(
        respond(
          response(
            '202 Accepted',
            ['Content-Type: text/plain', 'Set-Cookie: a=b', 'Webhook-Receipt: r1'],
            'line 1\nline\u0000 \u202e2',
          ),
        ),
      );
      const answer = await open()(peer.url);
      expect(answer).toMatchObject({
        status: 202,
        remoteAddress: '127.0.0.1',
        responseHeaders: { 'content-type': 'text/plain', 'webhook-receipt': 'r1' },
        responseExcerpt: 'line 1\\u000aline\\u0000 \\u202e2',
        responseBodySha256: createHash('sha256').update('line 1\nline\u0000 \u202e2').digest('hex'),
      });
      expect(answer.error).toBeUndefined();
      expect(answer.certificateSha256).toBeUndefined();
      expect(Object.keys(answer.responseHeaders ?? {})).not.toContain('set-cookie');
      expect(answer.durationMs).toBeGreaterThanOrEqual(0);
    });

    it('records an empty body as none', async () => {
      const peer = await openPeer(respond('HTTP/1.1 204 No Content\r\n\r\n'));
      const answer = await open()(peer.url);
      expect(answer).toMatchObject({ sent: true, status: 204 });
      expect(answer).not.toHaveProperty('responseExcerpt');
      expect(answer).not.toHaveProperty('responseBodySha256');
    });

    it('caps and escapes header values', async () => {
      const peer = await openPeer(
        respond(response('200 OK', [`Server: ${'x'.repeat(5_000)}`, 'X-Request-Id: a\u0085b'])),
      );
      const { responseHeaders } = await open()(peer.url);
      expect(responseHeaders?.['server']?.length).toBe(256);
      expect(responseHeaders?.['x-request-id']).not.toMatch(/\u0085/);
    });

    it('hands on a Retry-After only when there is exactly one', async () => {
      const peer = await openPeer((socket, { count }) =>
        socket.write(
          response('429 Slow', count === 1 ? ['Retry-After: 120'] : ['Retry-After: 120', 'retry-after: 120']),
        ),
      );
      const send = open();
      expect(await send(peer.url)).toMatchObject({ status: 429, retryAfter: '120' });
      const twice = await send(peer.url);
      expect(twice.status).toBe(429);
      expect(twice.retryAfter).toBeUndefined();
    });
  });

  describe('redirects', () => {
    it.each([
      ['301 Moved', 'https://www.h.example/new?token=SECRETQ', 'update the URL to https://www.h.example/new'],
      ['308 Permanent Redirect', 'https://h.example/hook/', 'update the URL to https://h.example/…/'],
      ['300 Multiple Choices', '/elsewhere', 'update the URL to http://127.0.0.1:PORT/elsewhere'],
      ['302 Found', undefined, 'the answer names no new address'],
      ['302 Found', 'http://[::bad', 'the answer names no new address'],
      ['303 See Other', 'https://h.example/a', 'update the URL to https://h.example/a'],
      ['304 Not Modified', undefined, 'the answer names no new address'],
    ])('does not follow %s to %s', async (status, location, detail) => {
      const peer = await openPeer(
        respond(response(status, location === undefined ? [] : [`Location: ${location}`])),
      );
      const answer = await open()(peer.url);
      expect(answer).toMatchObject({
        sent: true,
        status: Number(status.slice(0, 3)),
        error: 'redirect_not_followed',
        detail: detail.replace('PORT', String(peer.port)),
      });
      expect(peer.requests.length).toBe(1);
      expect(peer.requests[0]).toMatch(/^POST /);
    });
  });

  describe('success is the status and headers alone', () => {
    it.each([
      ['gzip that is none', response('200 OK', ['Content-Encoding: gzip'], 'hello'), 'hello'],
      [
        'a thousand encodings',
        response('200 OK', [`Content-Encoding: ${Array(1_000).fill('gzip').join(', ')}`], 'hello'),
        'hello',
      ],
      [
        'a chunk that is none',
        'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nZZ\r\n',
        'hello',
      ],
    ])('takes a 200 with %s', async (_name, text, excerpt) => {
      const peer = await openPeer(respond(text));
      const answer = await open()(peer.url);
      expect(answer).toMatchObject({ sent: true, status: 200, responseExcerpt: excerpt });
      expect(answer.error).toBeUndefined();
    });

    it.each([
      ['shorter than it said', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello'],
      ['chunked and cut off', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n'],
    ])('takes a 200 whose body is %s', async (_name, text) => {
      const peer = await openPeer((socket) => socket.end(text));
      const answer = await open()(peer.url);
      expect(answer).toMatchObject({ sent: true, status: 200, responseExcerpt: 'hello' });
      expect(answer.error).toBeUndefined();
    });

    it('takes a 200 whose body never ends when the time is up', async () => {
      const peer = await openPeer(respond('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello'));
      const answer = await open()(peer.url, { timeoutMs: 200 });
      expect(answer).toMatchObject({ sent: true, status: 200, responseExcerpt: 'hello' });
      expect(answer.error).toBeUndefined();
    });

    it('reads 8 KiB of an endless body, drops the connection, and keeps nothing', async () => {
      const chunk = Buffer.alloc(65_536, 'x');
      const peer = await openPeer((socket) => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n');
        const pour = (): void => {
          if (!socket.destroyed) socket.write(chunk, pour);
        };
        pour();
      });
      const send = open();
      await send(peer.url);
      globalThis.gc?.();
      const before = process.memoryUsage().rss;
      for (let i = 0; i < 30; i += 1) {
        const answer = await send(peer.url);
        expect(answer).toMatchObject({ sent: true, status: 200, responseExcerpt: 'x'.repeat(2_048) });
        expect(answer.responseBodySha256).toBe(
          createHash('sha256').update(Buffer.alloc(8_192, 'x')).digest('hex'),
        );
      }
      expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1_048_576);
      await Promise.all(peer.connections.map(closed));
      expect(peer.connections.length).toBe(31);
    });

    it('keeps the status of a failure whose body is broken', async () => {
      const peer = await openPeer((socket) =>
        socket.end('HTTP/1.1 503 Down\r\nContent-Length: 100\r\n\r\nhello'),
      );
      expect(await open()(peer.url)).toMatchObject({ sent: true, status: 503, responseExcerpt: 'hello' });
    });
  });

  describe('interim responses', () => {
    const hints = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n';
    const goOn = 'HTTP/1.1 100 Continue\r\n\r\n';

    it.each([
      ['103 twice', hints + hints + OK, 200],
      ['100', `${goOn}HTTP/1.1 204 No Content\r\n\r\n`, 204],
      [
        '100 thrice, with headers and a lone line feed',
        `${goOn}HTTP/1.1 100 Continue\r\nX-A: 1\r\n\r\n${hints}${goOn}${OK}`,
        200,
      ],
    ])('passes over %s', async (_name, text, status) => {
      const peer = await openPeer(respond(text));
      const send = open();
      for (let i = 0; i < 3; i += 1) expect(await send(peer.url)).toMatchObject({ sent: true, status });
      expect(peer.connections.length).toBe(1);
    });

    it('passes over a 100 that comes byte by byte', async () => {
      const peer = await openPeer(async (socket) => {
        socket.setNoDelay(true);
        for (const byte of `${goOn}${hints}${goOn}${OK}`)
          await new Promise((done) => socket.write(byte, done));
      });
      expect(await open()(peer.url)).toMatchObject({ sent: true, status: 200, responseExcerpt: 'ok' });
    });

    it('does not change what looks like a 100 in a body', async () => {
      const peer = await openPeer(respond(response('200 OK', [], goOn)));
      const send = open();
      for (let i = 0; i < 2; i += 1) {
        expect((await send(peer.url)).responseBodySha256).toBe(
          createHash('sha256').update(goOn).digest('hex'),
        );
      }
    });

    it('ends an endless 102 at the time limit', async () => {
      const peer = await openPeer((socket) => {
        const timer = setInterval(() => socket.write('HTTP/1.1 102 Processing\r\n\r\n'), 10);
        socket.on('close', () => clearInterval(timer));
      });
      expect(await open()(peer.url, { timeoutMs: 300 })).toMatchObject({
        sent: true,
        error: 'headers_timeout',
      });
    });

    it.each([
      ['HTTP/1.1 101 Switching Protocols\r\n\r\n'],
      ['HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n'],
    ])('takes %j as a failure', async (text) => {
      const peer = await openPeer(respond(text));
      const answer = await open()(peer.url);
      expect(answer).toMatchObject({ sent: true, error: 'protocol_error' });
      expect(answer.status).toBeUndefined();
    });
  });

  describe('answers that are none', () => {
    it.each([
      ['plain text', 'hello world\r\n'],
      ['an SSH banner', 'SSH-2.0-OpenSSH_9.2\r\n'],
      ['a status below 100', 'HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n'],
      ['an HTTP/0.9 body', '<html>\r\n'],
      ['TLS', Buffer.from([0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x46])],
      ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
      ['headers without end', `HTTP/1.1 200 OK\r\n${'X-A: b\r\n'.repeat(10_000)}`],
      ['one endless header', `HTTP/1.1 200 OK\r\nX-A: ${'\u001b[31mb'.repeat(20_000)}`],
    ])('names %s a protocol error', async (_name, text) => {
      const peer = await openPeer(respond(text));
      const send = open();
      const answer = await send(peer.url);
      expect(answer).toMatchObject({ sent: true, error: 'protocol_error' });
      expect(answer.status).toBeUndefined();
      expect(answer.detail).toMatch(/^[ -~]{1,300}$/);
      expect(answer.detail).not.toContain('hello');
      expect(answer.detail).not.toContain('SSH');
    });

    it.each([
      ['closes', (socket: { end(): void }) => socket.end()],
      ['resets', (socket: { resetAndDestroy(): void }) => socket.resetAndDestroy()],
    ])('names it when a new connection %s after the request, without a second try', async (_name, finish) => {
      const peer = await openPeer(finish);
      expect(await open()(peer.url)).toMatchObject({ sent: true, error: 'connection_reset' });
      expect(peer.requests.length).toBe(1);
    });
  });

  describe('time limits', () => {
    it('ends headers that trickle in at the time limit', async () => {
      const peer = await openPeer((socket) => {
        socket.write('HTTP/1.1 200 OK\r\n');
        const timer = setInterval(() => socket.write('X'), 20);
        socket.on('close', () => clearInterval(timer));
      });
      const answer = await open()(peer.url, { timeoutMs: 300 });
      expect(answer).toMatchObject({ sent: true, error: 'headers_timeout' });
      expect(answer.durationMs).toBeGreaterThanOrEqual(299);
      expect(answer.durationMs).toBeLessThan(4_000);
      await closed(peer.connections[0]);
    });

    it('says so when no connection became free', async () => {
      const peer = await openPeer(() => {});
      const send = open({ maxSockets: 1 });
      const [first, second] = await Promise.all([
        send(peer.url, { timeoutMs: 600 }),
        send(peer.url, { timeoutMs: 200 }),
      ]);
      expect(first).toMatchObject({ sent: true, error: 'headers_timeout' });
      expect(second).toMatchObject({ sent: false, error: 'connection_limit' });
      expect(peer.requests.length).toBe(1);
    });

    it('gives calls that wait the place of one that was given up', async () => {
      const peer = await openPeer((socket, { count }) => {
        if (count > 1) socket.write(OK);
      });
      const send = open({ maxSockets: 1 });
      const [first, second, third] = await Promise.all([
        send(peer.url, { timeoutMs: 200 }),
        send(peer.url),
        send(peer.url),
      ]);
      expect(first).toMatchObject({ error: 'headers_timeout' });
      expect(second).toMatchObject({ status: 200 });
      expect(third).toMatchObject({ status: 200 });
      expect(peer.connections.length).toBe(2);
    });

    it('never opens more connections to a host than it may', async () => {
      const peer = await openPeer((socket) => setImmediate(() => socket.write(OK)));
      const send = open({ maxSockets: 4 });
      const answers = await Promise.all(Array.from({ length: 100 }, () => send(peer.url)));
      expect(answers.every(({ status }) => status === 200)).toBe(true);
      expect(peer.connections.length).toBeLessThanOrEqual(4);
    });
  });

  describe('giving up', () => {
    it('ends a call when its signal says so', async () => {
      const controller = new AbortController();
      const peer = await openPeer(() => controller.abort());
      const answer = await open()(peer.url, { signal: controller.signal });
      expect(answer).toMatchObject({ sent: true, error: 'aborted' });
      await closed(peer.connections[0]);
    });

    it('ends all calls that share a signal, without a warning', async () => {
      const warnings: Error[] = [];
      const onWarning = (warning: Error): unknown => warnings.push(warning);
      process.on('warning', onWarning);
      const controller = new AbortController();
      const peer = await openPeer((_socket, { count }) => {
        if (count === 20) controller.abort();
      });
      const send = open();
      const calls = Array.from({ length: 20 }, () => send(peer.url, { signal: controller.signal }));
      const answers = await Promise.all(calls);
      await new Promise(setImmediate);
      process.off('warning', onWarning);
      expect(answers.map(({ sent, error }) => ({ sent, error }))).toEqual(
        Array(20).fill({ sent: true, error: 'aborted' }),
      );
      expect(warnings).toEqual([]);
    });

    it('begins no call whose signal has already said so', async () => {
      const peer = await openPeer(respond(OK));
      const answer = await open()(peer.url, { signal: AbortSignal.abort() });
      expect(answer).toMatchObject({ sent: false, error: 'aborted' });
      expect(peer.connections.length).toBe(0);
    });

    it('ends what is under way when closed, and takes nothing more', async () => {
      const egress = openEgress({ client, allow: ['127.0.0.0/8'], allowHttp: true });
      const arrived = new Promise<void>((resolve) => {
        void openPeer(() => resolve()).then((peer) => {
          call.url = peer.url;
          running = egress.send(call);
        });
      });
      const call = { url: '', headers: {}, body: BODY, timeoutMs: 5_000 };
      let running: Promise<Answer> | undefined;
      await arrived;
      await egress.close();
      expect(await running).toMatchObject({ sent: true, error: 'aborted' });
      expect(await egress.send(call)).toMatchObject({ sent: false, error: 'aborted' });
      await egress.close();
    });
  });

  describe('a kept connection that the server closes as it is used again', () => {
    it.each([
      ['resets', (socket: { resetAndDestroy(): void }) => socket.resetAndDestroy()],
      ['closes', (socket: { end(): void }) => socket.end()],
    ])('sends the same bytes once more when it %s', async (_name, finish) => {
      const peer = await openPeer((socket, { onConnection }) => {
        if (onConnection === 1) socket.write(OK);
        else finish(socket);
      });
      const send = open();
      await send(peer.url);
      const answer = await send(peer.url, { headers: { 'Idempotency-Key': 'second' } });
      expect(answer).toMatchObject({ sent: true, status: 200 });
      const [, second = '', again = ''] = peer.requests;
      expect(peer.requests.length).toBe(3);
      expect(withoutConnection(again)).toBe(withoutConnection(second));
      expect(again.toLowerCase()).toContain('idempotency-key: second');
    });

    it('tries once only, and says that the first may have arrived', async () => {
      const peer = await openPeer((socket, { count }) => {
        if (count === 1) socket.write(OK);
        else socket.resetAndDestroy();
      });
      const send = open();
      await send(peer.url);
      expect(await send(peer.url)).toMatchObject({ sent: true, error: 'connection_reset' });
      expect(peer.requests.length).toBe(3);
    });

    it('does not send again once part of an answer has come', async () => {
      const peer = await openPeer((socket, { count }) => {
        if (count === 1) socket.write(OK);
        else socket.end('HTTP/1.1 200 OK\r\nX-');
      });
      const send = open();
      await send(peer.url);
      const answer = await send(peer.url);
      expect(answer.sent).toBe(true);
      expect(answer.status).toBeUndefined();
      expect(answer.error).toMatch(/^(connection_reset|protocol_error)$/);
      expect(peer.requests.length).toBe(2);
    });

    it('loses nothing to a server that closes every connection after its answer without saying so', async () => {
      const peer = await openPeer((socket) => socket.end(OK));
      const send = open();
      for (let i = 0; i < 100; i += 1) {
        expect(await send(peer.url, { headers: { 'Idempotency-Key': `k${i}` } })).toMatchObject({
          status: 200,
        });
      }
      const distinct = new Set(peer.requests.map(withoutConnection));
      expect(distinct.size).toBe(100);
    });
  });

  describe('connections that fail', () => {
    it('is sure that nothing was sent to a port where nobody listens', async () => {
      const peer = await openPeer(respond(OK));
      await peer.close();
      expect(await open()(peer.url)).toMatchObject({ sent: false, error: 'connect_refused' });
    });

    it('keeps secrets of the URL out of every answer', async () => {
      const peer = await openPeer((socket, { count }) => {
        if (count === 1) socket.write(response('500 Oops'));
        else if (count === 2) socket.write('garbage\r\n');
        else if (count === 3) socket.write(response('308 R', ['Location: /T0/SECRETPATH/?token=SECRETQ']));
        else socket.end();
      });
      const plain = await openRawPeer((socket) =>
        socket.once('data', () => socket.end('HTTP/1.1 400 No\r\n\r\n')),
      );
      const secret = (base: string): string => `${base}/T0/SECRETPATH?token=SECRETQ`;
      const here = `http://127.0.0.1:${peer.port}`;
      const send = open();
      const answers = [
        await send(secret(here)),
        await send(secret(here)),
        await send(secret(here)),
        await send(secret(here)),
        await send(secret('https://10.1.2.3')),
        await send(secret('ftp://h.example')),
        await send(secret('http://user:SECRETP@h.example')),
        await send(secret(`https://127.0.0.1:${plain.port}`)),
        await send(secret('http://no-such-host.invalid')),
        await send(secret(here), { headers: { 'X-A': 'SECRETV\n' } }),
      ];
      expect(answers.map(({ status, error }) => status ?? error)).toEqual([
        500,
        'protocol_error',
        308,
        'connection_reset',
        'address_not_allowed',
        'url_not_allowed',
        'url_not_allowed',
        'tls_failure:ERR_SSL_WRONG_VERSION_NUMBER',
        'dns_failure',
        'invalid_request',
      ]);
      expect(JSON.stringify(answers)).not.toMatch(/SECRET/);
    });
  });
});

/** A second try says that its connection is not kept, where the client says so of each. */
function withoutConnection(request: string): string {
  return request.replace(/connection: [a-z-]+\r\n/i, '');
}
