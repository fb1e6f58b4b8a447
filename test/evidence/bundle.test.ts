import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Bundle, bundleText, closeBundle } from '../../src/domain/audit/bundle.ts';
import { createSignatureCheck, hashSeal, sealText } from '../../src/domain/audit/seal.ts';
import { verifyBundle } from '../../src/domain/audit/verify-bundle.ts';
import { canonicalJson } from '../../src/domain/json.ts';
import { Refusal } from '../../src/domain/refusal.ts';
import { exportEvidence } from '../../src/pipeline/evidence/export.ts';
import { checkSignature, createKeys, type Evidence, makeEvidence, sealAll, signer } from './support.ts';

let evidence: Evidence;
let bundle: Bundle;
let text: string;

beforeAll(async () => {
  evidence = await makeEvidence();
  await sealAll(evidence.pool);
  // A second seal, so that the first one has a history to be part of.
  await evidence.product.endpoints.pause(evidence.destination.endpointId, {
    actor: 'test',
    reason: 'a rest',
  });
  await sealAll(evidence.pool);
  bundle = await exportEvidence({ contractRef: 'pol-7781' }, { pool: evidence.pool, actor: 'test', signer });
  text = bundleText(bundle);
});

afterAll(() => evidence.close());

const verify = (of: string | Buffer): ReturnType<typeof verifyBundle> =>
  verifyBundle(Buffer.from(of as string), checkSignature);

test('holds everything of a contract, and verifies by the public key alone', () => {
  const report = verify(text);

  expect(report.findings).toEqual([]);
  expect(bundle.deliveries.map((d) => d.delivery.delivery_id).sort()).toEqual(
    [evidence.reminder, evidence.event].sort(),
  );
  const reminder = bundle.deliveries.find((d) => d.delivery.delivery_id === evidence.reminder);
  expect(reminder?.attempts.map((a) => a.status)).toEqual([503, 200]);
  expect(Buffer.from(reminder?.body.bytes ?? '', 'base64').toString()).toContain('"contract_ref":"pol-7781"');
  expect(report.head?.number).toBe(2);
});

test('says in plain words what it proves and what it cannot', () => {
  const { deliveries, cannot } = verify(text).proof;
  const says = deliveries.find((d) => d.delivery_id === evidence.reminder)?.says.join('\n');

  expect(says).toMatch(/^Contract pol-7781, renewal on .*: the notice was due at /);
  expect(says).toContain('the receiver answered 503');
  expect(says).toContain('Every attempt carried the same bytes');
  expect(says).toMatch(/Delivered at .*, in time: before the deadline\./);
  expect(says).toMatch(/Sealed in seal 1 at .*: nothing up to trail entry 3 of dlv_/);
  expect(cannot.join('\n')).toContain("rests on the receiver's own record of idempotency keys");
});

test('does not verify by another public key', () => {
  const report = verifyBundle(Buffer.from(text), createSignatureCheck([createKeys().publicKey]));

  expect(report.ok).toBe(false);
  expect(report.findings.map((f) => f.what)).toContain(
    `it is signed by the key ${signer.keyId}, which is not among the given public keys (--public-key)`,
  );
});

test('finds any byte that is flipped', () => {
  const bytes = Buffer.from(text);
  const every = Math.max(1, Math.floor(bytes.length / 1_500));
  for (let at = 0; at < bytes.length; at += every) {
    const flipped = Buffer.from(bytes);
    flipped[at] = (flipped[at] as number) ^ (1 << (at % 8));
    if (verify(flipped).ok) throw new Error(`byte ${at} was flipped, and nobody noticed`);
  }
});

describe('with the file hashed anew and its signature taken off', () => {
  /** All places within a value, as paths. */
  function* pathsOf(value: unknown, path: (string | number)[] = []): Generator<(string | number)[]> {
    if (path.length > 0) yield path;
    if (typeof value !== 'object' || value === null) return;
    for (const key of Array.isArray(value) ? value.keys() : Object.keys(value)) {
      yield* pathsOf((value as Record<string | number, unknown>)[key], [...path, key]);
    }
  }

  const changes: Readonly<Record<string, (value: unknown) => unknown>> = {
    string: (v) =>
      /^[0-9a-f]{16,}$/.test(v as string)
        ? (v as string).replace(/^./, (c) => (c === '0' ? '1' : '0'))
        : `${v as string}x`,
    number: (v) => (v as number) + 1,
    boolean: (v) => v !== true,
  };

  function changed(path: readonly (string | number)[], to: (value: unknown) => unknown): Bundle {
    const copy = structuredClone(bundle) as unknown as Record<string | number, unknown>;
    let holder = copy;
    for (const key of path.slice(0, -1)) holder = holder[key] as Record<string | number, unknown>;
    const last = path.at(-1) as string | number;
    const value = to(holder[last]);
    if (value === undefined && Array.isArray(holder)) holder.splice(last as number, 1);
    else holder[last] = value;
    const { sha256: _, signature: __, ...content } = copy as unknown as Bundle;
    return closeBundle(content, undefined);
  }

  /** What a seal does not speak of: who asked what and when, and when a delivery that has ended would be due next. */
  const FREE =
    /^(product|exported_at|exported_by|question|format|v|sha256|signature|receipts)\b|\.delivery\.due_at$/;

  test('finds every value of what was sealed that is changed', () => {
    const unnoticed: string[] = [];
    for (const path of pathsOf(bundle)) {
      const name = path.join('.');
      const value = path.reduce<unknown>((v, key) => (v as Record<string | number, unknown>)[key], bundle);
      const change = changes[typeof value];
      if (change === undefined || (FREE.test(name) && !/records\.\d+\.due_at|source\.due_at/.test(name)))
        continue;
      if (verify(bundleText(changed(path, change))).ok) unnoticed.push(name);
    }
    expect(unnoticed).toEqual([]);
  });

  test.each(['trail', 'attempts', 'records'])('finds an element of %s that is removed', (list) => {
    bundle.deliveries.forEach((delivery, d) => {
      (delivery[list as 'trail'] as unknown[]).forEach((_, i) => {
        expect(verify(bundleText(changed(['deliveries', d, list, i], () => undefined))).ok).toBe(false);
      });
    });
  });

  test('finds that two entries, two attempts or two seals have changed places', () => {
    const swap = (value: unknown): unknown => [...(value as unknown[])].reverse();
    const d = bundle.deliveries.findIndex((each) => each.attempts.length > 1);
    for (const path of [['deliveries', d, 'trail'], ['deliveries', d, 'attempts'], ['seals']])
      expect(verify(bundleText(changed(path, swap))).ok).toBe(false);
  });

  test('refuses a member that it does not know', () => {
    const extra = changed(['deliveries', 0, 'delivery'], (v) => ({ ...(v as object), note: 'believe me' }));
    expect(verify(bundleText(extra)).findings[0]?.what).toContain('note is not known here');
  });

  test('says that nothing vouches for what is not sealed', async () => {
    const { pool } = evidence;
    await pool.query("insert into operation (subject_id, event, actor, detail) values ('x', 'y', 'z', '{}')");
    const open = await exportEvidence({ deliveryId: evidence.waiting }, { pool, actor: 'test' });
    const report = verify(bundleText(open));
    expect(report.ok).toBe(true);
    expect(report.proof.vouched_for).toBe(false);
    expect(report.proof.proves[0]).toMatch(/^Nothing of what is not sealed/);
    expect(report.proof.cannot.at(-1)).toMatch(/^That it is whole.*this file is not signed/);
  });

  test('says that nothing vouches for it being whole, nor for receipts, although all of it is sealed', () => {
    const { sha256: _, signature: __, ...content } = bundle;
    const [delivery] = bundle.deliveries;
    const receipt = {
      idempotency_key: delivery?.delivery.idempotency_key ?? '',
      effect_at: null,
      body_sha256: null,
      effects: 1,
      text: 'made up',
    };
    for (const made of [
      { ...content, deliveries: content.deliveries.slice(0, 1), operations: [] },
      { ...content, receipts: [receipt] },
    ]) {
      const report = verify(bundleText(closeBundle(made, undefined)));
      expect(report.findings).toEqual([]);
      expect(report.proof.vouched_for).toBe(false);
      expect(report.proof.proves[0]).toMatch(/^Each delivery for itself, because it is sealed/);
    }
  });
});

describe('against published seals', () => {
  const seals = (): { number: number; sha256: string }[] =>
    bundle.seals.map(({ statement }) => ({
      number: statement.number,
      sha256: hashSeal(sealText(statement)).toString('hex'),
    }));
  const against = (published: { number: number; sha256: string }[]): ReturnType<typeof verifyBundle> =>
    verifyBundle(Buffer.from(text), checkSignature, published);

  test('names those that are the same, of which the last vouches for all before', () => {
    expect(against(seals())).toMatchObject({ ok: true, published: { same: [1, 2], unknown: [] } });
    expect(against(seals().slice(1))).toMatchObject({ ok: true, published: { same: [2], unknown: [] } });
  });

  test('finds a seal that is another one', () => {
    const report = against(seals().map((s) => ({ ...s, sha256: '0'.repeat(64) })));
    expect(report.ok).toBe(false);
    expect(report.findings[0]).toEqual({
      where: 'seal 1',
      what: 'it is not the one that was published, 000000000000…: it was replaced',
    });
  });

  test('names those that nothing published vouches for', () => {
    expect(against([])).toMatchObject({ published: { same: [], unknown: [1] } });
    expect(against(seals().slice(0, 1))).toMatchObject({ published: { same: [1], unknown: [] } });
  });
});

test('finds white space that was added, and a member that stands twice', () => {
  expect(verify(text.replace('{', '{ ')).findings[0]?.what).toContain('not written the way it is exported');
  expect(verify(text.replace('"v":1', '"v":1,"v":1')).ok).toBe(false);
  expect(verify(`${canonicalJson(bundle)}\n\n`).ok).toBe(false);
});

test('takes receipts by key, and finds one of other bytes or two effects', async () => {
  const { pool } = evidence;
  const [delivery] = bundle.deliveries;
  const receipt = {
    idempotency_key: delivery?.delivery.idempotency_key ?? '',
    effect_at: '2027-03-01T08:00:01Z',
    body_sha256: delivery?.body.sha256 ?? '',
    effects: 1,
    text: '…',
  };
  const withReceipts = async (...receipts: (typeof receipt)[]) =>
    verify(
      bundleText(
        await exportEvidence({ contractRef: 'pol-7781' }, { pool, actor: 'test', signer, receipts }),
      ),
    );

  const good = await withReceipts(receipt);
  expect(good.findings).toEqual([]);
  expect(good.proof.deliveries[0]?.says.join('\n')).toContain(
    'took effect once, at 2027-03-01T08:00:01Z, for these bytes',
  );
  expect((await withReceipts({ ...receipt, body_sha256: '00'.repeat(32) })).findings[0]?.what).toContain(
    'other bytes',
  );
  expect((await withReceipts({ ...receipt, effects: 2 })).findings[0]?.what).toContain('took effect 2 times');
  const other = await withReceipts({ ...receipt, idempotency_key: 'of another delivery' });
  expect(other.bundle?.receipts).toEqual([]);
});

test('answers for the day that is asked about, and refuses a question that nothing answers', async () => {
  const { pool } = evidence;
  const ask = (date: string): Promise<Bundle> =>
    exportEvidence({ contractRef: 'pol-7781', date }, { pool, actor: 'test', signer });

  const today = await ask(new Date().toISOString().slice(0, 10));
  expect(today.deliveries).toHaveLength(2);
  await expect(ask('2001-01-01')).rejects.toThrow(Refusal);
});
