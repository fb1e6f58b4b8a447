import { PublishError } from '../../broker/outgoing.ts';
import type { Publisher } from '../../broker/publisher.ts';
import { insertNotice } from '../../store/notices.ts';
import type { Queryable } from '../../store/pool.ts';
import { DELIVERED, deliveredMessageId } from '../delivered-notice.ts';

/** Tells other services that a delivery was delivered; resolves when that is certain, or certain to be tried again. */
export type TellDelivered = (delivery: {
  readonly deliveryId: string;
  readonly contractRef?: string | undefined;
}) => Promise<void>;

export interface TellDeliveredOptions {
  readonly db: Queryable;
  readonly publisher: Publisher;
  /** The exchange that other services bind to. */
  readonly exchange: string;
}

/** Where nobody listens, nobody is told; how long until that is asked again. */
const SILENCE_MS = 1_000;

/**
 * Most deliveries are delivered, so this notice is not written down first, as the others are: it is published before the
 * wake-up is acknowledged. Who dies in between leaves a wake-up that comes again, and it is published then.
 */
export function createTellDelivered({ db, publisher, exchange }: TellDeliveredOptions): TellDelivered {
  let silentUntilMs = 0;
  return async ({ deliveryId, contractRef }) => {
    if (performance.now() < silentUntilMs) return;
    const body = { delivery_id: deliveryId, contract_ref: contractRef ?? null };
    try {
      await publisher.publish({
        exchange,
        routingKey: DELIVERED,
        messageId: deliveredMessageId(deliveryId),
        body: Buffer.from(JSON.stringify({ v: 1, event: DELIVERED, ...body })),
        optional: true,
      });
    } catch (error) {
      if (!(error instanceof PublishError)) throw error;
      if (error.failure === 'returned') silentUntilMs = performance.now() + SILENCE_MS;
      else await insertNotice(db, { name: DELIVERED, body });
    }
  };
}
