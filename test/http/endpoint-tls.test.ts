import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { issueCertificate } from '../egress/certificates.ts';
import { closePeers, openTlsPeer, respond, response } from '../egress/peers.ts';
import { reaches } from '../support/flow.ts';
import { openTestApi, type TestApi } from './client.ts';

const NOT_AFTER = new Date('2031-05-04T03:02:01Z');
const authority = issueCertificate({ name: 'House Authority', isAuthority: true, notAfter: NOT_AFTER });
const server = issueCertificate({ name: 'server', issuer: authority, addresses: ['127.0.0.1'] });
const client = issueCertificate({ name: 'duepost', issuer: authority, notAfter: NOT_AFTER });
const stranger = issueCertificate({ name: 'stranger' });
const encryptedKey = client.privateKey
  .export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'open' })
  .toString();
const TLS = { ca: authority.cert, certificate: client.cert, key: client.key };
let api: TestApi;

beforeAll(async () => {
  api = await openTestApi({ roles: ['worker'] });
});

afterAll(async () => {
  await api.close();
  await closePeers();
});

function shownOf(cert: string, subject: string): object {
  const sha256 = new X509Certificate(cert).fingerprint256.replaceAll(':', '').toLowerCase();
  return { subject, sha256, expires_at: NOT_AFTER.toISOString() };
}

async function create(name: string, more: object) {
  const body = { name, url: 'https://127.0.0.1:59999/', ...more };
  return api.call('POST', '/v1/endpoints', { body });
}

function patch(name: string, tls: unknown) {
  return api.call('PATCH', `/v1/endpoints/${name}`, { body: { tls } });
}

test('certificates are shown by subject, fingerprint and end; the key is not', async () => {
  const shown = {
    ca: [shownOf(authority.cert, 'CN=House Authority')],
    certificate: shownOf(client.cert, 'CN=duepost'),
  };
  const created = await create('inner', { tls: TLS });
  expect([created.status, created.body.tls]).toEqual([201, shown]);
  const found = await api.call('GET', '/v1/endpoints/inner');
  expect(found.body.tls).toEqual(shown);
  const list = await api.call('GET', '/v1/endpoints');
  for (const { text } of [created, found, list]) expect(text).not.toMatch(/BEGIN|"key"/);
  expect((await create('none', {})).body.tls).toBeNull();
});

test('a patch changes the member it names, and null takes it away', async () => {
  await create('merged', { tls: TLS });
  const bundle = `# two of them\n${stranger.cert}\n${authority.cert}`;
  const both = (await patch('merged', { ca: bundle })).body.tls;
  expect(both).toMatchObject({
    ca: [{ subject: 'CN=stranger' }, { subject: 'CN=House Authority' }],
    certificate: { subject: 'CN=duepost' },
  });
  expect((await patch('merged', { ca: null })).body.tls).toMatchObject({
    ca: [],
    certificate: { subject: 'CN=duepost' },
  });
  expect((await patch('merged', { certificate: null, key: null })).body.tls).toBeNull();
  await patch('merged', { ca: authority.cert });
  const renamed = await api.call('PATCH', '/v1/endpoints/merged', { body: { name: 'renamed' } });
  expect(renamed.body.tls.ca).toHaveLength(1);
  expect((await patch('renamed', null)).body.tls).toBeNull();
});

test.each<[string, object, string, RegExp]>([
  ['a certificate without its key', { certificate: client.cert }, '/tls/key', /together/],
  ['a key without its certificate', { key: client.key }, '/tls/certificate', /together/],
  ['the key of another certificate', { ...TLS, key: stranger.key }, '/tls/key', /does not belong/],
  ['an encrypted key', { ...TLS, key: encryptedKey }, '/tls/key', /openssl pkey/],
  ['a key that is none', { ...TLS, key: client.cert }, '/tls/key', /BEGIN PRIVATE KEY/],
  [
    'a key among the certificates',
    { ...TLS, certificate: client.cert + client.key },
    '/tls/certificate',
    /key/,
  ],
  ['a key among the authorities', { ca: client.key }, '/tls/ca', /holds a private key/],
  ['an authority that is none', { ca: 'c2VjcmV0' }, '/tls/ca', /BEGIN CERTIFICATE/],
  [
    'a damaged certificate',
    { ca: `${authority.cert}${authority.cert.replace(/\nMII.{20}/, '\nMIIAAAA')}` },
    '/tls/ca',
    /certificate 2/,
  ],
  ['more than 64 KiB', { ca: 'x'.repeat(65_537) }, '/tls/ca', /65536/],
  ['a member that is not known', { cert: client.cert }, '/tls/cert', /not known/],
])('%s is refused by its name, without being quoted', async (_, tls, path, message) => {
  for (const answer of [
    await create('refused', { tls }),
    await create('victim', {}).then(() => patch('victim', tls)),
  ]) {
    expect(answer.status).toBe(400);
    expect(answer.body.errors).toMatchObject([{ path, message: expect.stringMatching(message) }]);
    expect(answer.text).not.toMatch(/MII|MHc|c2VjcmV0/);
  }
  expect((await api.call('GET', '/v1/endpoints/refused')).status).toBe(404);
});

test('certificates are refused for an endpoint without TLS, whichever is changed', async () => {
  const url = 'http://127.0.0.1:59999/';
  expect((await create('plain', { url, tls: TLS })).body.errors).toMatchObject([{ path: '/tls' }]);
  await create('secure', { tls: TLS });
  const downgraded = await api.call('PATCH', '/v1/endpoints/secure', { body: { url } });
  expect([downgraded.status, downgraded.body.errors]).toMatchObject([400, [{ path: '/tls' }]]);
});

test('a test event is sent with the certificates of its endpoint', async () => {
  const peer = await openTlsPeer(
    { ...server, ca: authority.cert, requestCert: true },
    respond(response('200 OK')),
  );
  await create('tested', { url: peer.url, tls: TLS });
  const { body } = await api.call('POST', '/v1/endpoints/tested/test');
  await reaches(api.product, body.deliveries[0].delivery_id, 'delivered');
  expect(peer.requests).toHaveLength(1);
});
