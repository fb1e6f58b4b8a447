/** The event that says that a delivery was delivered. */
export const DELIVERED = 'delivery.delivered';

/** The `message_id` of that event: the same on every way it may take, so that whoever listens knows it again. */
export function deliveredMessageId(deliveryId: string): string {
  return `delivered-${deliveryId}`;
}
