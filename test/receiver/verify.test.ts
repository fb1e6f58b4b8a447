import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { parseSecret, signatureHeaders } from '../../src/domain/signing.ts';
import { type Scheme, VerificationError, verify } from '../../src/receiver/verify.ts';
import { OTHER_SECRET, SECRET, signedCall } from './signed-call.ts';

interface Vectors {
  sign: {
    name: string;
    secrets: string[];
    webhook_id: string;
    timestamp: number;
    body_base64: string;
    webhook_signature: string;
    x_signature_256: string;
  }[];
  verify: {
    name: string;
    scheme: Scheme;
    secrets: string[];
    headers: Record<string, string>;
    body_base64: string;
    now: number;
    tolerance_seconds: number;
    expect: string;
  }[];
  secrets: { name: string; secret: string; key_hex: string | null }[];
}

const vectors = JSON.parse(
  readFileSync(new URL('../../conformance/signatures.json', import.meta.url), 'utf8'),
) as Vectors;

/** `valid`, or the code of the error. */
function verdict(call: Parameters<typeof verify>[0]): string {
  try {
    verify(call);
    return 'valid';
  } catch (error) {
    if (error instanceof VerificationError) return error.code;
    throw error;
  }
}

describe('conformance/signatures.json', () => {
  it.each(vectors.sign)('signs: $name', (vector) => {
    const signed = signatureHeaders({
      deliveryId: vector.webhook_id,
      timestampSeconds: vector.timestamp,
      body: Buffer.from(vector.body_base64, 'base64'),
      secrets: vector.secrets.map(parseSecret),
    });
    expect(signed['webhook-signature']).toBe(vector.webhook_signature);
    expect(signed['X-Signature-256']).toBe(vector.x_signature_256);
  });

  it.each(vectors.verify)('verifies: $name → $expect', (vector) => {
    const result = verdict({
      headers: vector.headers,
      body: Buffer.from(vector.body_base64, 'base64'),
      secret: vector.secrets,
      now: new Date(vector.now * 1000),
      scheme: vector.scheme,
      toleranceSeconds: vector.tolerance_seconds,
    });
    expect(result).toBe(vector.expect);
  });

  it.each(vectors.secrets)('reads a secret: $name', ({ secret, key_hex }) => {
    if (key_hex === null) {
      expect(() => parseSecret(secret)).toThrow();
      expect(verdict({ ...signedCall(), secret, now: new Date() })).toBe('bad_secret');
    } else {
      expect(parseSecret(secret).toString('hex')).toBe(key_hex);
    }
  });
});

describe('verify', () => {
  it('believes what the official library signs', () => {
    const body = '{"name":"Zürich"}';
    const at = new Date();
    const headers = {
      'webhook-id': 'msg_1',
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': new Webhook(SECRET).sign('msg_1', at, body),
    };
    const verified = verify({ headers, body: Buffer.from(body), secret: SECRET, now: at });
    expect(verified).toEqual({ deliveryId: 'msg_1' });
  });

  it('has its signatures believed by the official library, during a rotation too', () => {
    const { headers, body } = signedCall({ body: '{"name":"Zürich"}', secrets: [OTHER_SECRET, SECRET] });
    expect(new Webhook(SECRET).verify(body, headers)).toEqual({ name: 'Zürich' });
    expect(new Webhook(OTHER_SECRET.slice('whsec_'.length)).verify(body, headers)).toEqual({
      name: 'Zürich',
    });
  });

  it('believes no body that differs in one bit', () => {
    const now = new Date();
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1 }), fc.nat(), (bytes, position) => {
        const { headers, body } = signedCall({ body: Buffer.from(bytes).toString('latin1'), at: now });
        const changed = Buffer.from(body);
        const at = position % changed.length;
        changed[at] = (changed[at] ?? 0) ^ (1 << (position % 8));
        expect(verdict({ headers, body, secret: SECRET, now })).toBe('valid');
        expect(verdict({ headers, body: changed, secret: SECRET, now })).toBe('no_matching_signature');
        expect(verdict({ headers, body: changed, secret: SECRET, now, scheme: 'x-signature-256' })).toBe(
          'no_matching_signature',
        );
      }),
    );
  });

  it('answers any header whatsoever with a named error, never with another exception', () => {
    const { body } = signedCall();
    const header = fc.option(fc.oneof(fc.string({ unit: 'binary' }), fc.array(fc.string())), {
      nil: undefined,
    });
    fc.assert(
      fc.property(header, header, header, header, fc.boolean(), (id, timestamp, signature, hex, standard) => {
        const headers = {
          'webhook-id': id,
          'webhook-timestamp': timestamp,
          'webhook-signature': signature,
          'x-signature-256': hex,
        };
        const scheme = standard ? 'standard-webhooks' : 'x-signature-256';
        expect(verdict({ headers, body, secret: SECRET, now: new Date(), scheme })).not.toBe('valid');
      }),
    );
  });

  it('reads a Web Headers object and a header sent as an array', () => {
    const { headers, body } = signedCall();
    const now = new Date();
    expect(verdict({ headers: new Headers(headers), body, secret: SECRET, now })).toBe('valid');
    const twice = { ...headers, 'webhook-id': [String(headers['webhook-id']), 'dlv_2'] };
    expect(verdict({ headers: twice, body, secret: SECRET, now })).toBe('no_matching_signature');
  });

  it('insists on raw bytes, because a body that was parsed is another body', () => {
    const { headers } = signedCall();
    const parsed = { type: 'renewal.reminder' } as unknown as Uint8Array;
    expect(() => verify({ headers, body: parsed, secret: SECRET, now: new Date() })).toThrow(/raw bytes/);
  });

  it('does not repeat a bad secret in its error', () => {
    const secret = 'whsec_hunter2';
    expect(() => verify({ ...signedCall(), secret, now: new Date() })).toThrow(
      expect.objectContaining({ code: 'bad_secret', message: expect.not.stringContaining('hunter2') }),
    );
  });
});
