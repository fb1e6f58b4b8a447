import { describe, expect, it } from 'vitest';
import { openEgress } from '../../src/egress/open.ts';
import type { Answer } from '../../src/egress/send.ts';
import { BODY, CLIENTS, openerFor } from './caller.ts';
import { closed, openPeer, respond, response } from './peers.ts';

const OK = response('200 OK', [], 'ok');

describe.each(CLIENTS)('limits of calls through %s', (client) => {
  const open = openerFor(client);

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
});

/** A second try says that its connection is not kept, where the client says so of each. */
function withoutConnection(request: string): string {
  return request.replace(/connection: [a-z-]+\r\n/i, '');
}
