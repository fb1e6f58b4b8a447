import { afterAll, beforeAll, expect, test } from 'vitest';
import { openConnection } from '../../src/broker/connection.ts';
import { namesOf } from '../../src/broker/topology.ts';
import { hashSeal, type SealStatement, sealText } from '../../src/domain/audit/seal.ts';
import { openDestination, publishTo, QUICK } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';
import { checkSignature, keys, linesOf, verifyAll } from './support.ts';

interface Announcement {
  readonly event: string;
  readonly seal: SealStatement;
  readonly sha256: string;
  readonly signature: string;
}

let product: TestProduct;

beforeAll(async () => {
  product = await openTestProduct({
    env: { ...QUICK, DUEPOST_SEALING_KEY: keys.privateKey, DUEPOST_SEALING_INTERVAL_MS: '100' },
  });
});

afterAll(() => product.close());

test('the reconciler seals what ended and tells everybody, who can check it, until somebody cuts the seals off', async () => {
  const { broker } = product.config;
  const connection = await openConnection(broker, 'an auditor');
  const channel = await connection.createChannel();
  const { queue } = await channel.assertQueue('', { exclusive: true });
  await product.start(['worker', 'reconciler']);
  await channel.bindQueue(queue, namesOf(broker.prefix).notifications, 'audit.sealed');
  const heard: Announcement[] = [];
  await channel.consume(queue, (m) => m && heard.push(JSON.parse(m.content.toString())), { noAck: true });

  const destination = await openDestination(product);
  const { deliveryId } = await publishTo(product, destination);
  const { pool } = product.parts;
  const number = await until('the seal of the delivery', async () => {
    const found = await pool.query<{ seal_number: number }>(
      'select seal_number from seal_leaf where subject_id = $1',
      [deliveryId],
    );
    return found.rows[0]?.seal_number;
  });
  const told = await until('the notification', () => heard.find((h) => h.seal.number === number));

  expect(told.event).toBe('audit.sealed');
  const text = sealText(told.seal);
  expect(hashSeal(text).toString('hex')).toBe(told.sha256);
  expect(checkSignature(told.seal.key_id, text, Buffer.from(told.signature, 'hex'))).toBe(true);
  expect(linesOf(await verifyAll(pool, { published: [{ number, sha256: told.sha256 }] }))).toEqual([]);
  await connection.close();
  await destination.receiver.close();

  const owner = await pool.connect();
  await owner.query('set session_replication_role = replica; delete from seal_leaf; delete from seal');
  await owner.query('set session_replication_role = default');
  owner.release();
  const refusal = await until('the refusal to seal on', () =>
    product.recorded.lines.find((line) => line.event === 'seal_failed'),
  );
  expect(String(refusal.fields['error'])).toMatch(/which this process has seen, is gone/);
  expect(refusal.level).toBe('error');
  expect((await pool.query('select from seal')).rows).toEqual([]);
});

test('without a key it says once that nothing is sealed', async () => {
  const unsealed = await openTestProduct({ env: QUICK, roles: ['reconciler'] });
  const warnings = unsealed.recorded.lines.filter((l) => l.event === 'sealing_is_off');
  await unsealed.close();
  expect(warnings).toHaveLength(1);
  expect(warnings[0]?.level).toBe('warn');
});
