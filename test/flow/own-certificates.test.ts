import { randomBytes } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findEndpoint } from '../../src/store/endpoints.ts';
import { issueCertificate } from '../egress/certificates.ts';
import { closePeers, openTlsPeer, type Peer, response } from '../egress/peers.ts';
import { outcomeOf, publishTo, QUICK, reaches } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';

const authority = issueCertificate({ name: 'House Authority', isAuthority: true });
const server = issueCertificate({ name: 'server', issuer: authority, addresses: ['127.0.0.1'] });
const client = issueCertificate({ name: 'duepost', issuer: authority });
const renewed = issueCertificate({ name: 'duepost renewed', issuer: authority });
const stranger = issueCertificate({ name: 'stranger' });
const TLS = { ca: authority.cert, certificate: client.cert, key: client.key };
const ONCE = { kind: 'schedule', retry_schedule: [0], max_attempts: 1 };

let product: TestProduct;
/** Takes only who shows a certificate of the house. */
let peer: Peer;
const shown: (string | undefined)[] = [];

beforeAll(async () => {
  product = await openTestProduct({ env: QUICK });
  peer = await openTlsPeer(
    // With TLS 1.3 a client learns of its refusal only after the handshake.
    { ...server, ca: authority.cert, requestCert: true, maxVersion: 'TLSv1.2' },
    (socket) => {
      shown.push((socket as TLSSocket).getPeerX509Certificate()?.subject);
      socket.write(response('200 OK'));
    },
  );
});

afterAll(async () => {
  await product.close();
  await closePeers();
});

async function openEndpoint(name: string): Promise<{ readonly name: string }> {
  await product.endpoints.create({ name, url: peer.url, policy: ONCE, tls: TLS }, { actor: 'test' });
  return { name };
}

async function send(endpoint: { readonly name: string }, state: string) {
  const { deliveryId } = await publishTo(product, endpoint);
  return (await reaches(product, deliveryId, state)).attempts[0];
}

test('an endpoint that wants a certificate is called with its own, and with a new one from the next call on', async () => {
  const stop = await product.start(['worker']);
  const inner = await openEndpoint('inner');
  await send(inner, 'delivered');
  await product.endpoints.patch(
    'inner',
    { tls: { certificate: renewed.cert, key: renewed.key } },
    { actor: 'test' },
  );
  await send(inner, 'delivered');
  expect(shown).toEqual(['CN=duepost', 'CN=duepost renewed']);

  await product.endpoints.patch('inner', { tls: { certificate: null, key: null } }, { actor: 'test' });
  expect((await send(inner, 'dead_lettered'))?.error).toMatch(/^tls_failure:ERR_SSL_/);
  expect(shown).toHaveLength(2);
  await stop();
});

test('a server that is certified by an authority of its own is called where the endpoint names it, and nowhere else', async () => {
  const stop = await product.start(['worker']);
  const own = await openTlsPeer(server, (socket) => socket.write(response('200 OK')));
  await product.endpoints.create(
    { name: 'own', url: own.url, policy: ONCE, tls: { ca: authority.cert } },
    { actor: 'test' },
  );
  await product.endpoints.create({ name: 'public', url: own.url, policy: ONCE }, { actor: 'test' });
  await send({ name: 'own' }, 'delivered');
  const untrusted = /^tls_failure:(SELF_SIGNED|UNABLE_TO_(GET|VERIFY))/;
  expect((await send({ name: 'public' }, 'dead_lettered'))?.error).toMatch(untrusted);
  await product.endpoints.patch('own', { tls: null }, { actor: 'test' });
  expect((await send({ name: 'own' }, 'dead_lettered'))?.error).toMatch(untrusted);
  expect(own.requests).toHaveLength(1);
  await stop();
});

test.each<[string, string, (name: string) => Promise<unknown>]>([
  [
    'a client key that no master key opens',
    'unopened',
    (name) =>
      product.parts.pool.query('update endpoint set tls_key = $2 where name = $1', [name, randomBytes(64)]),
  ],
  [
    'a client certificate that cannot be read',
    'damaged',
    (name) =>
      product.parts.pool.query(`update endpoint set tls_certificate = 'damaged' where name = $1`, [name]),
  ],
  [
    'an authority that cannot be read',
    'nobody',
    (name) => product.parts.pool.query(`update endpoint set tls_ca = 'damaged' where name = $1`, [name]),
  ],
])('%s is our fault: nothing is sent, and the delivery waits', async (_, name, damage) => {
  const endpoint = await openEndpoint(name);
  await damage(name);
  const calls = peer.requests.length;
  const { deliveryId } = await publishTo(product, endpoint);
  const stop = await product.start(['worker']);
  const outcome = await until('the attempt to be given back', async () => {
    const found = await outcomeOf(product, deliveryId);
    return found.state === 'due' && found.attempts[0]?.outcome !== undefined && found;
  });
  expect(outcome.attempts).toMatchObject([{ outcome: 'unknown', error: 'not_sent' }]);
  expect(await findEndpoint(product.parts.pool, name)).toMatchObject({ consecutiveFailures: 0 });

  // Mended, the one attempt that the policy gives is still there.
  await product.endpoints.patch(name, { tls: TLS }, { actor: 'test' });
  await product.parts.pool.query('update delivery set due_at = now() where delivery_id = $1', [deliveryId]);
  const stopReconciler = await product.start(['reconciler']);
  await reaches(product, deliveryId, 'delivered');
  expect(peer.requests).toHaveLength(calls + 1);
  await stopReconciler();
  await stop();
});

test('what is done to certificates is written down, and the key nowhere', async () => {
  await openEndpoint('written');
  await product.endpoints.patch('written', { tls: { ca: stranger.cert } }, { actor: 'anna' });
  await product.endpoints.patch('written', { tls: null }, { actor: 'anna' });
  const { rows } = await product.parts.pool.query(
    `select o.actor, o.detail from operation o join endpoint e on e.endpoint_id = o.subject_id
      where e.name = 'written' order by o.operation_id`,
  );
  const house = { subject: 'CN=House Authority' };
  const certificate = { subject: 'CN=duepost' };
  expect(rows).toMatchObject([
    { detail: { tls: { ca: [house], certificate } } },
    {
      actor: 'anna',
      detail: {
        from: { tls: { ca: [house], certificate } },
        to: { tls: { ca: [{ subject: 'CN=stranger' }], certificate } },
      },
    },
    { detail: { from: { tls: { certificate } }, to: { tls: null } } },
  ]);
  expect(JSON.stringify(rows)).not.toContain('BEGIN');
  await product.endpoints.patch('written', { tls: TLS }, { actor: 'anna' });
  const stored = await product.parts.pool.query(
    `select e::text as row from endpoint e where name = 'written'`,
  );
  const keyText = client.key.split('\n')[1] as string;
  for (const form of [keyText, Buffer.from(keyText).toString('hex')])
    expect(stored.rows[0].row).not.toContain(form);
});
