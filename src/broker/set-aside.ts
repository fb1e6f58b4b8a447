import type { Incoming } from './incoming.ts';
import { type Outgoing, PublishError, SetAsideFullError } from './outgoing.ts';
import type { Publisher } from './publisher.ts';

/** The header that says why a message was set aside. */
export const ERROR_HEADER = 'x-duepost-error';
const MAX_REASON_CHARACTERS = 1000;

/** Headers the broker acts on: sent again they would route copies elsewhere, or pretend to a history. */
const BROKER_HEADERS =
  /^(?:CC|BCC|x-death|x-first-death-.*|x-last-death-.*|x-delivery-count|x-acquired-count)$/;

/**
 * Puts a message where people will see it, as it came, with the reason.
 *
 * Kept are body, routing key and properties, except those a broker acts on (expiry, user, copies). Properties that
 * cannot be written again, such as headers beyond a frame, are left out, and the header says so.
 *
 * @param exchange  of `Names`: `poison` or `commandsRejected`
 * @param reason  for `commandsRejected`, `code: text`
 * @throws SetAsideFullError when its queue is full; else as `publish` does
 */
export async function setAside(
  publisher: Publisher,
  exchange: string,
  { message, reason }: { readonly message: Incoming; readonly reason: string },
): Promise<void> {
  const { headers, messageId, correlationId, contentType, userId: _, ...properties } = message.properties;
  const why = reason.slice(0, MAX_REASON_CHARACTERS);
  const bare: Outgoing = {
    exchange,
    routingKey: message.routingKey,
    body: message.body,
    headers: { [ERROR_HEADER]: why },
  };
  const publish = (outgoing: Outgoing): Promise<void> =>
    publisher.publish(outgoing).catch((error: unknown) => {
      throw error instanceof PublishError && error.failure === 'nacked'
        ? new SetAsideFullError(exchange, error)
        : error;
    });
  try {
    await publish({
      ...bare,
      headers: { ...withoutBrokerHeaders(headers), [ERROR_HEADER]: why },
      properties,
      contentType: contentType ?? 'application/octet-stream',
      ...(messageId === undefined ? {} : { messageId }),
      ...(correlationId === undefined ? {} : { correlationId }),
    });
  } catch (error) {
    if (error instanceof PublishError || error instanceof SetAsideFullError) throw error;
    await publish({
      ...bare,
      headers: { [ERROR_HEADER]: `${why} (its properties could not be kept)` },
    });
  }
}

/**
 * Why a message lies where it lies: in our words, or in those of the broker, which sets aside on its own what came back too
 * often and writes `x-death` instead of our header. Undefined: nobody says.
 */
export function reasonSetAside(headers: Readonly<Record<string, unknown>>): string | undefined {
  const ours = headers[ERROR_HEADER];
  if (typeof ours === 'string') return ours;
  const [death] = Array.isArray(headers['x-death']) ? headers['x-death'] : [];
  if (typeof death !== 'object' || death === null) return undefined;
  const { reason, queue } = death as Readonly<Record<'reason' | 'queue', string>>;
  return reason === 'delivery_limit'
    ? `delivery_limit: whatever took it from ${queue} died of it or gave it back, again and again`
    : `${reason}: the broker took it out of ${queue}`;
}

/** Without what would be acted on a second time. */
export function withoutBrokerHeaders(headers: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !BROKER_HEADERS.test(name)));
}
