// The one request that everybody makes: the same client, the same headers, the same bytes, signed.

import { importProduct } from './modules.mjs';

export const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
export const EVENT_TYPE = 'order.created';

/** Payloads of about 330 bytes that differ. */
export function payloadOf(number) {
  return {
    order_id: `ord_${String(number).padStart(8, '0')}`,
    customer: { id: 'cus_81723', name: 'Maria Musterfrau', email: 'maria.musterfrau@example.com' },
    items: [
      { sku: 'SKU-12-A', quantity: 2, price_cents: 1299 },
      { sku: 'SKU-98-C', quantity: 1, price_cents: 4999 },
    ],
    total_cents: 7597,
    currency: 'EUR',
    note: 'Please ring twice and leave it with the neighbours if nobody is at home.',
  };
}

/** The bytes that peers send: those of an event's body. */
export function bodyOf(number) {
  return JSON.stringify({ type: EVENT_TYPE, timestamp: '2027-03-31T09:00:00.000Z', data: payloadOf(number) });
}

/**
 * @param options `client` undici or node-fetch, `url`, `sockets`
 * @returns `call(key, id, body)`, which throws for anything but 2xx, and `close`
 */
export async function createCaller({ client, url, sockets = 64 }) {
  const { openEgress } = await importProduct('egress/open.js');
  const { parseSecret, signatureHeaders } = await importProduct('domain/signing.js');
  const egress = openEgress({ client, allow: ['127.0.0.0/8'], allowHttp: true, maxSockets: sockets });
  const secrets = [parseSecret(SECRET)];
  return {
    async call(key, id, text) {
      const body = Buffer.from(text);
      const answer = await egress.send({
        url,
        headers: {
          'Content-Type': 'application/json',
          'User-Agent': 'duepost-bench',
          'Idempotency-Key': key,
          'X-Delivery-Attempt': '1',
          ...signatureHeaders({
            deliveryId: id,
            timestampSeconds: Math.floor(Date.now() / 1000),
            body,
            secrets,
          }),
        },
        body,
        timeoutMs: 10_000,
      });
      if (!(answer.status >= 200 && answer.status < 300))
        throw new Error(`answered ${answer.status ?? answer.error}`);
    },
    close: () => egress.close(),
  };
}
