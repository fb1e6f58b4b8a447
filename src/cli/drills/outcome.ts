import type { Delivery } from '../../store/deliveries.ts';
import { type AuditRecord, listAuditRecordsOf } from '../../store/evidence/audit.ts';
import { type Attempt, findDelivery } from '../../store/find-delivery.ts';
import type { Queryable } from '../../store/pool.ts';

/** What became of a delivery so far: where it stands, every attempt, every audit record. */
export interface DeliveryOutcome extends Delivery {
  readonly attempts: readonly Attempt[];
  readonly auditRecords: readonly AuditRecord[];
}

/** Throws when there is no delivery of that id. */
export async function findOutcome(db: Queryable, deliveryId: string): Promise<DeliveryOutcome> {
  const found = await findDelivery(db, deliveryId);
  if (found === undefined) throw new Error(`there is no delivery ${deliveryId}`);
  const auditRecords = await listAuditRecordsOf(db, deliveryId);
  return { ...found.delivery, attempts: found.attempts, auditRecords };
}
