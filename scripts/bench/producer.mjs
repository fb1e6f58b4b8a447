// Producers of commands: AMQP with confirms, and HTTP.

import { EVENT_TYPE, payloadOf } from './call.mjs';
import { importFrom } from './modules.mjs';

/** Publishes commands with confirms, at most `window` unconfirmed. */
export async function connectProducer(product, { window = 1_000 } = {}) {
  const amqp = await importFrom('amqplib');
  const connection = await (amqp.connect ?? amqp.default.connect)(process.env.DUEPOST_AMQP_URL);
  const channel = await connection.createConfirmChannel();
  const exchange = `${product.prefix}.commands`;
  let unconfirmed = 0;
  let wake;

  async function publish(number) {
    while (unconfirmed >= window)
      await new Promise((resolve) => {
        wake = resolve;
      });
    unconfirmed += 1;
    const body = { v: 1, type: EVENT_TYPE, idempotency_key: `k${number}`, payload: payloadOf(number) };
    channel.publish(
      exchange,
      'event.publish',
      Buffer.from(JSON.stringify(body)),
      { persistent: true, mandatory: true, contentType: 'application/json' },
      (error) => {
        if (error) throw error;
        unconfirmed -= 1;
        wake?.();
      },
    );
  }

  return {
    publish,
    async publishMany(count, first = 0) {
      for (let number = first; number < first + count; number += 1) await publish(number);
      await channel.waitForConfirms();
    },
    async close() {
      await channel.close();
      await connection.close();
    },
  };
}

/** Posts events, `concurrent` requests at a time, `batch` events in each (1: the single call). */
export async function postEvents({ url, key, count, batch, concurrent }) {
  const { Pool } = await importFrom('undici');
  const pool = new Pool(url, { connections: concurrent });
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
  const eventOf = (number) => ({
    type: EVENT_TYPE,
    idempotency_key: `k${number}`,
    payload: payloadOf(number),
  });
  let next = 0;
  await Promise.all(
    Array.from({ length: concurrent }, async () => {
      while (next < count) {
        const first = next;
        next += batch;
        const events = Array.from({ length: Math.min(batch, count - first) }, (_, i) => eventOf(first + i));
        const { statusCode, body } = await pool.request({
          path: batch === 1 ? '/v1/events' : '/v1/events/batch',
          method: 'POST',
          headers,
          body: JSON.stringify(batch === 1 ? events[0] : { events }),
        });
        const text = await body.text();
        if (statusCode >= 300) throw new Error(`the API answered ${statusCode}: ${text.slice(0, 300)}`);
      }
    }),
  );
  await pool.close();
}
