import { parseSecret, signatureHeaders } from '../../src/domain/signing.ts';

export const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
export const OTHER_SECRET = 'whsec_dGhpcyBpcyBhbm90aGVyIHNlY3JldCBvZiAzMiBi';

export interface SignedCall {
  key?: string | undefined;
  webhookId?: string;
  body?: string;
  attempt?: number;
  secrets?: readonly string[];
  at?: Date;
}

/** A call as the sender makes it: headers and bytes. */
export function signedCall(call: SignedCall = {}): { headers: Record<string, string>; body: Buffer } {
  const { key, webhookId = `dlv_${key ?? 'none'}`, secrets = [SECRET], at = new Date() } = call;
  const body = Buffer.from(call.body ?? '{"type":"renewal.reminder","data":{"n":1}}');
  const signed = signatureHeaders({
    deliveryId: webhookId,
    timestampSeconds: Math.floor(at.getTime() / 1000),
    body,
    secrets: secrets.map(parseSecret),
  });
  return {
    headers: {
      'content-type': 'application/json',
      'x-delivery-attempt': String(call.attempt ?? 1),
      ...(key === undefined ? {} : { 'idempotency-key': key }),
      ...Object.fromEntries(Object.entries(signed).map(([name, value]) => [name.toLowerCase(), value])),
    },
    body,
  };
}

/** Makes the call over HTTP. */
export async function post(url: string, call: SignedCall = {}): Promise<Response> {
  const { headers, body } = signedCall(call);
  return fetch(url, { method: 'POST', headers, body: new Uint8Array(body) });
}
