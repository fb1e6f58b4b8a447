import type { Queryable } from '../pool.ts';
import { queryList } from '../query-list.ts';
import { wasRenewedOn } from './former-dates.ts';

/** How one cycle of a delivery ended: written once, never changed. */
export interface AuditRecord {
  readonly deliveryId: string;
  readonly kind: 'reminder' | 'event';
  readonly cycle: number;
  readonly contractRef: string | undefined;
  readonly endpointId: string;
  readonly endpointUrl: string;
  readonly state: string;
  readonly deadReason: string | undefined;
  readonly idempotencyKey: string;
  readonly bodySha256: Buffer;
  readonly attempts: number;
  readonly firstAttemptAt: Date | undefined;
  readonly finishedAt: Date;
  readonly dueAt: Date;
  readonly deadlineAt: Date | undefined;
  readonly revision: number;
  readonly inTime: boolean;
  /** Whether nothing was sent, because the endpoint was in shadow mode. */
  readonly shadow: boolean;
  readonly actor: string;
}

interface Row {
  readonly delivery_id: string;
  readonly kind: AuditRecord['kind'];
  readonly cycle: number;
  readonly contract_ref: string | null;
  readonly endpoint_id: string;
  readonly endpoint_url: string;
  readonly state: string;
  readonly dead_reason: string | null;
  readonly idempotency_key: string;
  readonly body_sha256: Buffer;
  readonly attempts: number;
  readonly first_attempt_at: Date | null;
  readonly finished_at: Date;
  readonly due_at: Date;
  readonly deadline_at: Date | null;
  readonly revision: number;
  readonly in_time: boolean;
  readonly shadow: boolean;
  readonly actor: string;
}

function toRecord(row: Row): AuditRecord {
  return {
    deliveryId: row.delivery_id,
    kind: row.kind,
    cycle: row.cycle,
    contractRef: row.contract_ref ?? undefined,
    endpointId: row.endpoint_id,
    endpointUrl: row.endpoint_url,
    state: row.state,
    deadReason: row.dead_reason ?? undefined,
    idempotencyKey: row.idempotency_key,
    bodySha256: row.body_sha256,
    attempts: row.attempts,
    firstAttemptAt: row.first_attempt_at ?? undefined,
    finishedAt: row.finished_at,
    dueAt: row.due_at,
    deadlineAt: row.deadline_at ?? undefined,
    revision: row.revision,
    inTime: row.in_time,
    shadow: row.shadow,
    actor: row.actor,
  };
}

/** Which audit records; what is undefined does not matter. */
export interface AuditFilter {
  readonly contractRef?: string | undefined;
  /** YYYY-MM-DD: a day from when it was due until it ended; with a contract also the renewal date, now or before it was rescheduled. */
  readonly date?: string | undefined;
}

/** A position in the order of records: the newest delivery first, its latest cycle first. */
export interface AuditPosition {
  readonly deliveryId: string;
  readonly cycle: number;
}

/** Before every record there is. */
const NEWEST: AuditPosition = { deliveryId: 'dlv_~', cycle: 0 };

const COLUMNS = `a.delivery_id, a.kind, a.cycle, a.contract_ref, a.endpoint_id, a.endpoint_url, a.state,
             a.dead_reason, a.idempotency_key, a.body_sha256, a.attempts, a.first_attempt_at, a.finished_at, a.due_at,
             a.deadline_at, a.revision, a.in_time, a.shadow, a.actor`;

/** Of one contract; its days are those of the reminder's own time zone. */
const LIST_OF_CONTRACT = `
      select ${COLUMNS}
        from audit_record a
        left join reminder r on r.contract_ref = $1 and r.delivery_id = a.delivery_id
       cross join lateral (
         select (a.due_at at time zone coalesce(r.time_zone, 'UTC'))::date as due,
                (a.finished_at at time zone coalesce(r.time_zone, 'UTC'))::date as ended
       ) as day
       where a.contract_ref = $1
         and ($2::date is null or $2 in (r.renewal_date, day.due, day.ended) or $2 between day.due and day.ended
              or ${wasRenewedOn('a.delivery_id', '$2')})
         and (a.delivery_id, a.cycle) < ($3, $4)
       order by a.delivery_id desc, a.cycle desc
       limit $5`;

/** Of all contracts; days are UTC. */
const LIST = `
      select ${COLUMNS}
        from audit_record a
       cross join lateral (
         select (a.due_at at time zone 'UTC')::date as due, (a.finished_at at time zone 'UTC')::date as ended
       ) as day
       where $1::text is null
         and ($2::date is null or $2 in (day.due, day.ended) or $2 between day.due and day.ended)
         and (a.delivery_id, a.cycle) < ($3, $4)
       order by a.delivery_id desc, a.cycle desc
       limit $5`;

/** Audit records, newest delivery first, from after a position (undefined: from the newest). */
export async function listAuditRecords(
  db: Queryable,
  filter: AuditFilter,
  page: { readonly after: AuditPosition | undefined; readonly limit: number },
): Promise<AuditRecord[]> {
  const { deliveryId, cycle } = page.after ?? NEWEST;
  const rows = await queryList<Row>(db, {
    narrowing: 'contract',
    ...(filter.contractRef === undefined
      ? { name: 'list_audit_records', text: LIST }
      : { name: 'list_audit_records_of_contract', text: LIST_OF_CONTRACT }),
    values: [filter.contractRef ?? null, filter.date ?? null, deliveryId, cycle, page.limit],
  });
  return rows.map(toRecord);
}

/** The audit records of one delivery, its first cycle first. */
export async function listAuditRecordsOf(db: Queryable, deliveryId: string): Promise<AuditRecord[]> {
  const result = await db.query<Row>({
    name: 'list_audit_records_of_delivery',
    text: `
      select ${COLUMNS}
        from audit_record a
       where a.delivery_id = $1
       order by a.cycle`,
    values: [deliveryId],
  });
  return result.rows.map(toRecord);
}
