import { X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Egress, openEgress } from '../../src/egress/open.ts';
import type { Answer, Call, CallTls } from '../../src/egress/send.ts';
import { issueCertificate } from './certificates.ts';
import { closed, closePeers, openRawPeer, openTlsPeer, respond, response } from './peers.ts';

const DAY_MS = 86_400_000;
const OK = response('200 OK', [], 'ok');
const BODY = Buffer.from('{"secret":"of the customer"}');

const authority = issueCertificate({ name: 'Test Authority', isAuthority: true });
const stranger = issueCertificate({ name: 'Other Authority', isAuthority: true });
const server = issueCertificate({ name: 'server', issuer: authority, addresses: ['127.0.0.1'] });

describe.each(['node-fetch', 'undici'] as const)('TLS through %s', (client) => {
  const opened: Egress[] = [];

  function open(): (url: string, call?: Partial<Call>) => Promise<Answer> {
    const egress = openEgress({ client, allow: ['127.0.0.0/8'], allowHttp: false });
    opened.push(egress);
    return (url, call = {}) =>
      egress.send({ url, headers: {}, body: BODY, timeoutMs: 5_000, tls: { ca: authority.cert }, ...call });
  }

  afterEach(async () => {
    vi.unstubAllEnvs();
    for (const egress of opened.splice(0)) await egress.close();
    await closePeers();
  });

  it('records the fingerprint of the certificate, on kept connections too', async () => {
    const peer = await openTlsPeer(server, respond(OK));
    const send = open();
    const fingerprint = new X509Certificate(server.cert).fingerprint256.replaceAll(':', '').toLowerCase();
    for (let i = 0; i < 3; i += 1) {
      expect(await send(peer.url)).toMatchObject({
        sent: true,
        status: 200,
        remoteAddress: '127.0.0.1',
        certificateSha256: fingerprint,
      });
    }
    expect(peer.connections.length).toBe(1);
  });

  it.each([
    [
      'has expired',
      'CERT_HAS_EXPIRED',
      { notBefore: new Date(Date.now() - 9 * DAY_MS), notAfter: new Date(Date.now() - DAY_MS) },
    ],
    [
      'is not valid yet',
      'CERT_NOT_YET_VALID',
      { notBefore: new Date(Date.now() + DAY_MS), notAfter: new Date(Date.now() + 9 * DAY_MS) },
    ],
    ['is for another host', 'ERR_TLS_CERT_ALTNAME_INVALID', { addresses: [], names: ['other.example'] }],
    ['is signed by a stranger', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', { issuer: stranger }],
    ['is signed by itself', 'DEPTH_ZERO_SELF_SIGNED_CERT', { issuer: undefined }],
  ])('sends nothing to a server whose certificate %s', async (_name, code, wish) => {
    const { issuer, ...rest } = { issuer: authority, addresses: ['127.0.0.1'], ...wish };
    const certificate = issueCertificate({
      name: 'server',
      ...rest,
      ...(issuer === undefined ? {} : { issuer }),
    });
    // Within TLS 1.3 the server's side is done first: it would see what a careless client sends early.
    const peer = await openTlsPeer({ ...certificate, minVersion: 'TLSv1.3' }, respond(OK));
    const answer = await open()(peer.url);
    await Promise.all(peer.connections.map(closed));
    expect(answer).toMatchObject({ sent: false, error: `tls_failure:${code}` });
    expect(answer.status).toBeUndefined();
    expect(peer.bytesReceived()).toBe(0);
  });

  it('verifies even if the environment says not to', async () => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
    const peer = await openTlsPeer(
      issueCertificate({ name: 'server', addresses: ['127.0.0.1'] }),
      respond(OK),
    );
    expect(await open()(peer.url)).toMatchObject({
      sent: false,
      error: 'tls_failure:DEPTH_ZERO_SELF_SIGNED_CERT',
    });
    expect(peer.requests).toEqual([]);
  });

  it('does not trust the authority of one endpoint for another', async () => {
    const peer = await openTlsPeer(server, respond(OK));
    const send = open();
    expect(await send(peer.url)).toMatchObject({ status: 200 });
    expect(await send(peer.url, { tls: { ca: stranger.cert } })).toMatchObject({ sent: false });
    expect(await send(peer.url, { tls: {} })).toMatchObject({ sent: false });
    expect(peer.requests.length).toBe(1);
  });

  it('speaks nothing older than TLS 1.2', async () => {
    const options = {
      ...server,
      minVersion: 'TLSv1',
      maxVersion: 'TLSv1',
      ciphers: 'DEFAULT:@SECLEVEL=0',
    } as const;
    const peer = await openTlsPeer(options, respond(OK));
    const answer = await open()(peer.url);
    expect(answer.sent).toBe(false);
    expect(answer.error).toMatch(/^tls_failure:ERR_SSL_\w*PROTOCOL\w*$/);
    expect(peer.requests).toEqual([]);
  });

  it('speaks TLS 1.2', async () => {
    const peer = await openTlsPeer({ ...server, maxVersion: 'TLSv1.2' }, respond(OK));
    expect(await open()(peer.url)).toMatchObject({ status: 200 });
  });

  it('gives up a handshake that hangs', async () => {
    const peer = await openRawPeer(() => {});
    const answer = await open()(peer.url, { timeoutMs: 200 });
    expect(answer).toMatchObject({
      sent: false,
      error: 'connect_timeout',
      detail: 'no TLS handshake within 200 ms',
    });
  });

  it.each([
    [
      'speaks plain HTTP',
      'ERR_SSL_WRONG_VERSION_NUMBER',
      (socket: Socket) => socket.end('HTTP/1.1 400 Bad\r\n\r\n'),
    ],
    ['hangs up', 'ECONNRESET', (socket: Socket) => socket.end()],
  ])('names the failure when a server %s in the handshake', async (_name, code, reply) => {
    const peer = await openRawPeer((socket) => socket.once('data', () => reply(socket)));
    expect(await open()(peer.url)).toMatchObject({ sent: false, error: `tls_failure:${code}` });
  });

  it('shows the certificate of the endpoint, and never that of another', async () => {
    const own = issueCertificate({ name: 'duepost', issuer: authority });
    const seen: (string | undefined)[] = [];
    const peer = await openTlsPeer(
      { ...server, ca: authority.cert, requestCert: true, rejectUnauthorized: false },
      (socket) => {
        seen.push((socket as TLSSocket).getPeerX509Certificate()?.subject);
        socket.write(OK);
      },
    );
    const send = open();
    const tls = { ca: authority.cert, cert: own.cert, key: own.key };
    expect(await send(peer.url, { tls })).toMatchObject({ status: 200 });
    expect(await send(peer.url)).toMatchObject({ status: 200 });
    expect(seen).toEqual(['CN=duepost', undefined]);
  });

  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'names it when a server wants a certificate and gets none (%s)',
    async (version) => {
      const peer = await openTlsPeer(
        { ...server, ca: authority.cert, requestCert: true, maxVersion: version },
        respond(OK),
      );
      const answer = await open()(peer.url);
      expect(answer.status).toBeUndefined();
      expect(answer.error).toMatch(/^tls_failure:ERR_SSL_|^connection_reset$/);
    },
  );

  it.each<[string, CallTls]>([
    ['a certificate', { cert: 'no certificate SECRET', key: server.key }],
    ['a key of another certificate', { cert: server.cert, key: stranger.key }],
    ['an authority', { ca: 'no certificate SECRET' }],
  ])('takes %s that cannot be used for a fault of this side', async (_name, tls) => {
    const peer = await openTlsPeer(server, respond(OK));
    const answer = await open()(peer.url, { tls });
    expect(answer).toMatchObject({ sent: false, error: 'local_failure' });
    expect(answer.detail).toMatch(/own certificates or key cannot be used \(ERR_\w+\)/);
    expect(JSON.stringify(answer)).not.toContain('SECRET');
    expect(peer.connections.length).toBe(0);
  });

  it('sends the same bytes once more when a kept connection is closed under it', async () => {
    const peer = await openTlsPeer(server, (socket, { onConnection }) => {
      if (onConnection === 1) socket.write(OK);
      else socket.end();
    });
    const send = open();
    for (let i = 0; i < 5; i += 1) expect(await send(peer.url)).toMatchObject({ sent: true, status: 200 });
  });
});
