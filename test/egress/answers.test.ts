import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { CLIENTS, openerFor } from './caller.ts';
import { openPeer, openRawPeer, respond, response } from './peers.ts';

const OK = response('200 OK', [], 'ok');

describe.each(CLIENTS)('odd answers through %s', (client) => {
  const open = openerFor(client);

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
