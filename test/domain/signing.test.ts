import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { Refusal } from '../../src/domain/refusal.ts';
import { formatSecret, parseSecret, signatureHeaders } from '../../src/domain/signing.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const bytes24 = Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64');

describe('a signature', () => {
  it('is the one the Standard Webhooks libraries are tested with', () => {
    const headers = signatureHeaders({
      deliveryId: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      timestampSeconds: 1614265330,
      body: Buffer.from('{"test": 2432232314}'),
      secrets: [parseSecret(secret)],
    });
    expect(headers['webhook-id']).toBe('msg_p5jXN8AQM9LWM0D4loKWxJek');
    expect(headers['webhook-timestamp']).toBe('1614265330');
    expect(headers['webhook-signature']).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
  });

  it.each([
    [Buffer.alloc(20, 0x0b), 'Hi There', 'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7'],
    [
      'Jefe',
      'what do ya want for nothing?',
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    ],
    [
      Buffer.alloc(20, 0xaa),
      Buffer.alloc(50, 0xdd),
      '773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe',
    ],
    [
      Buffer.alloc(131, 0xaa),
      'Test Using Larger Than Block-Size Key - Hash Key First',
      '60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54',
    ],
    [
      Buffer.alloc(131, 0xaa),
      'This is a test using a larger than block-size key and a larger than block-size data. ' +
        'The key needs to be hashed before being used by the HMAC algorithm.',
      '9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2',
    ],
  ])('of the body alone is the HMAC of RFC 4231', (key, data, expected) => {
    const headers = signatureHeaders({
      deliveryId: 'dlv_1',
      timestampSeconds: 0,
      body: Buffer.from(data as string),
      secrets: [Buffer.from(key as string)],
    });
    expect(headers['X-Signature-256']).toBe(expected);
  });

  it('is verified by the reference library, whatever the body and the secret', () => {
    const keys = fc.uint8Array({ minLength: 24, maxLength: 64 });
    fc.assert(
      fc.property(keys, fc.string({ unit: 'grapheme', minLength: 1 }), (key, text) => {
        const timestampSeconds = Math.floor(Date.now() / 1000);
        const body = Buffer.from(text);
        const secrets = [parseSecret(formatSecret(key))];
        const headers = signatureHeaders({ deliveryId: 'dlv_1', timestampSeconds, body, secrets });
        const receiver = new Webhook(formatSecret(key));
        receiver.verify(body, { ...headers }, { jsonParse: false });
        expect(() =>
          receiver.verify(Buffer.concat([body, body]), { ...headers }, { jsonParse: false }),
        ).toThrow();
      }),
    );
  });

  it('is verified with either secret while one replaces the other, and the plain one uses the newest', () => {
    const older = Buffer.alloc(32, 1);
    const newer = Buffer.alloc(32, 2);
    const input = {
      deliveryId: 'dlv_1',
      timestampSeconds: Math.floor(Date.now() / 1000),
      body: Buffer.from('{}'),
    };
    const headers = signatureHeaders({ ...input, secrets: [newer, older] });
    for (const key of [newer, older]) new Webhook(formatSecret(key)).verify('{}', { ...headers });
    const alone = signatureHeaders({ ...input, secrets: [newer] });
    expect(headers['X-Signature-256']).toBe(alone['X-Signature-256']);
    expect(headers['webhook-signature'].split(' ')[0]).toBe(alone['webhook-signature']);
    expect(headers['webhook-signature'].split(' ')).toHaveLength(2);
  });

  it('differs between attempts only in its time', () => {
    const input = { deliveryId: 'dlv_1', body: Buffer.from('{}'), secrets: [bytes24] };
    const first = signatureHeaders({ ...input, timestampSeconds: 100 });
    const second = signatureHeaders({ ...input, timestampSeconds: 130 });
    expect(second['webhook-id']).toBe(first['webhook-id']);
    expect(second['X-Signature-256']).toBe(first['X-Signature-256']);
    expect(second['webhook-signature']).not.toBe(first['webhook-signature']);
  });

  it('is never made without a secret', () => {
    const input = { deliveryId: 'dlv_1', timestampSeconds: 0, body: Buffer.from('{}') };
    expect(() => signatureHeaders({ ...input, secrets: [] })).toThrow(RangeError);
  });
});

describe('a secret', () => {
  it('is read with its prefix and without, as the reference library reads it', () => {
    expect(parseSecret(secret)).toEqual(bytes24);
    expect(parseSecret('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')).toEqual(bytes24);
    expect(formatSecret(bytes24)).toBe(secret);
  });

  it('holds 24 to 64 bytes', () => {
    expect(parseSecret(formatSecret(new Uint8Array(24)))).toHaveLength(24);
    expect(parseSecret(formatSecret(new Uint8Array(64)))).toHaveLength(64);
    for (const length of [0, 8, 23, 65]) {
      expect(() => parseSecret(formatSecret(new Uint8Array(length)))).toThrow(/24 to 64 bytes/);
    }
  });

  it.each([
    'v1,whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    'whsec_whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n',
    'whsec_MfKQ9r8GKYqrTwjU\nPD8ILPZIo2LaLaSw',
    ' whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwA', // one character too many
    `whsec_${Buffer.alloc(25, 7).toString('base64').replaceAll('=', '')}`, // not padded
    `whsec_${Buffer.alloc(32, 0xff).toString('base64url')}`,
    'correct horse battery staple, at some length',
    'pässwörter-pässwörter-pässwörter',
    'whsec_',
    '',
  ])('that a receiver could read differently is refused without being repeated: %j', (text) => {
    let refusal: unknown;
    try {
      parseSecret(text);
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toBeInstanceOf(Refusal);
    const { code, message } = refusal as Refusal;
    expect(code).toBe('invalid_request');
    if (text.length > 10) expect(message).not.toContain(text);
  });

  it('comes back from its text as it was', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 24, maxLength: 64 }), (bytes) => {
        expect(new Uint8Array(parseSecret(formatSecret(bytes)))).toEqual(bytes);
      }),
    );
  });
});
