import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { BODY, CLIENTS, openerFor } from './caller.ts';
import { closed, openPeer, respond, response } from './peers.ts';

const OK = response('200 OK', [], 'ok');

describe.each(CLIENTS)('calls through %s', (client) => {
  const open = openerFor(client);

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

    it('uses no connection again that it has closed, whatever was still to be read from it', async () => {
      const long = response('200 OK', ['Connection: close'], 'x'.repeat(9_000));
      // The first call goes on all the while: its connection keeps the host known.
      const peer = await openPeer((socket, { count }) => {
        if (count > 1) socket.write(count % 2 === 0 ? long : OK);
      });
      const send = open();
      const goesOn = send(peer.url, { timeoutMs: 3_000 });
      for (let i = 0; i < 6; i += 1) expect(await send(peer.url)).toMatchObject({ sent: true, status: 200 });
      expect(peer.requests.length).toBe(7);
      await goesOn;
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
});
