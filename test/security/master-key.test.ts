import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { issueCertificate } from '../egress/certificates.ts';
import { closePeers, openTlsPeer, respond, response } from '../egress/peers.ts';
import { runCli } from '../support/cli.ts';
import { type Destination, openDestination, publishTo, QUICK, reaches } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';

const OLD_KEY = randomBytes(32);
const NEW_KEY = randomBytes(32);
let product: TestProduct;
let destination: Destination;

beforeAll(async () => {
  product = await openTestProduct({ env: { ...QUICK, DUEPOST_MASTER_KEY: OLD_KEY.toString('base64') } });
  destination = await openDestination(product);
});

afterAll(async () => {
  await destination.receiver.close();
  await product.close();
  await closePeers();
});

/** Delivers one event with these keys; the receiver checks the signature. */
async function deliverWith(masterKey: Buffer, previousMasterKeys: readonly Buffer[]): Promise<unknown> {
  const stop = await product.start(['worker'], { ...product.config, masterKey, previousMasterKeys });
  const { deliveryId } = await publishTo(product, destination);
  await reaches(product, deliveryId, 'delivered');
  await stop();
  return destination.receiver.calls().at(-1)?.verified;
}

const environment = (previous?: Buffer): Record<string, string> => ({
  ...product.env,
  DUEPOST_MASTER_KEY: NEW_KEY.toString('base64'),
  ...(previous === undefined ? {} : { DUEPOST_MASTER_KEY_PREVIOUS: previous.toString('base64') }),
});

test('the master key is changed without a delivery that is not signed as before', async () => {
  expect(await deliverWith(OLD_KEY, [])).toBe(true);
  expect(await deliverWith(NEW_KEY, [OLD_KEY])).toBe(true);

  const without = await runCli(['endpoint', 'reencrypt', '--json'], environment());
  expect([without.code, without.json['unreadable']]).toEqual([1, [destination.endpointId]]);
  expect(without.stderr).toContain('DUEPOST_MASTER_KEY_PREVIOUS');

  const first = await runCli(['endpoint', 'reencrypt', '--json'], environment(OLD_KEY));
  expect([first.code, first.json]).toEqual([0, { reencrypted: 1, current: 0, unreadable: [] }]);
  const again = await runCli(['endpoint', 'reencrypt', '--json'], environment());
  expect([again.code, again.json]).toEqual([0, { reencrypted: 0, current: 1, unreadable: [] }]);

  // The old key is not needed any more, and worth nothing.
  expect(await deliverWith(NEW_KEY, [])).toBe(true);
  const { rows } = await product.parts.pool.query(
    'select event, detail from operation where subject_id = $1 order by operation_id',
    [destination.endpointId],
  );
  expect(rows.at(-1)).toEqual({ event: 'endpoint.secret_reencrypted', detail: { secret_number: 1 } });
});

test('the key of a client certificate is encrypted again too', async () => {
  const authority = issueCertificate({ name: 'House Authority', isAuthority: true });
  const server = issueCertificate({ name: 'server', issuer: authority, addresses: ['127.0.0.1'] });
  const { cert: certificate, key } = issueCertificate({ name: 'duepost', issuer: authority });
  const peer = await openTlsPeer(
    { ...server, ca: authority.cert, requestCert: true },
    respond(response('200 OK')),
  );
  const tls = { ca: authority.cert, certificate, key };
  const { endpoint } = await product.endpoints.create(
    { name: 'inner', url: peer.url, tls },
    { actor: 'test' },
  );

  const { code, json } = await runCli(['endpoint', 'reencrypt', '--json'], environment(OLD_KEY));
  expect([code, json]).toEqual([0, { reencrypted: 2, current: 1, unreadable: [] }]);
  const { rows } = await product.parts.pool.query(
    'select event from operation where subject_id = $1 order by operation_id',
    [endpoint.endpointId],
  );
  expect(rows.at(-1)).toEqual({ event: 'endpoint.client_key_reencrypted' });
  const stop = await product.start(['worker'], {
    ...product.config,
    masterKey: NEW_KEY,
    previousMasterKeys: [],
  });
  const { deliveryId } = await publishTo(product, endpoint);
  await reaches(product, deliveryId, 'delivered');
  expect(peer.requests).toHaveLength(1);
  await stop();
});

test('a secret is bound to its endpoint: moved to another one, nothing opens it', async () => {
  const other = await openDestination(product);
  await product.parts.pool.query(
    `update endpoint_secret s set ciphertext = o.ciphertext
       from endpoint_secret o where s.endpoint_id = $1 and o.endpoint_id = $2`,
    [other.endpointId, destination.endpointId],
  );
  const { json } = await runCli(['endpoint', 'reencrypt', '--json'], environment(OLD_KEY));
  expect(json['unreadable']).toEqual([other.endpointId]);
  await other.receiver.close();
});
