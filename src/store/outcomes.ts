import type { Queryable } from './pool.ts';

/** What became of a delivery: where it stands, every attempt, every audit record. */
export interface DeliveryOutcome {
  readonly state: string;
  readonly deadReason: string | undefined;
  /** Undefined: ended. */
  readonly dueAt: Date | undefined;
  readonly scheduledAt: Date;
  readonly deadlineAt: Date | undefined;
  readonly revision: number;
  readonly idempotencyKey: string;
  readonly attempts: readonly AttemptOutcome[];
  readonly auditRecords: readonly AuditedOutcome[];
}

export interface AttemptOutcome {
  readonly attempt: number;
  readonly claimedBy: string;
  /** Undefined: not known yet. */
  readonly outcome: string | undefined;
  readonly status: number | undefined;
  readonly error: string | undefined;
  readonly startedAt: Date | undefined;
  readonly finishedAt: Date | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly nextDueAt: Date | undefined;
}

export interface AuditedOutcome {
  readonly cycle: number;
  readonly state: string;
  readonly attempts: number;
  readonly bodySha256: string;
  readonly firstAttemptAt: Date | undefined;
  readonly finishedAt: Date;
  readonly deadlineAt: Date | undefined;
  readonly revision: number;
  readonly inTime: boolean;
}

interface Row {
  readonly state: string;
  readonly dead_reason: string | null;
  readonly due_at: Date | null;
  readonly scheduled_at: Date;
  readonly deadline_at: Date | null;
  readonly revision: number;
  readonly idempotency_key: string;
}

interface AttemptRow {
  readonly attempt: number;
  readonly claimed_by: string;
  readonly outcome: string | null;
  readonly status: number | null;
  readonly error: string | null;
  readonly started_at: Date | null;
  readonly finished_at: Date | null;
  readonly retry_after_seconds: number | null;
  readonly next_due_at: Date | null;
}

interface AuditRow {
  readonly cycle: number;
  readonly state: string;
  readonly attempts: number;
  readonly body_sha256: Buffer;
  readonly first_attempt_at: Date | null;
  readonly finished_at: Date;
  readonly deadline_at: Date | null;
  readonly revision: number;
  readonly in_time: boolean;
}

/** What became of a delivery so far. Throws when there is none of that id. */
export async function findOutcome(db: Queryable, deliveryId: string): Promise<DeliveryOutcome> {
  const delivery = await db.query<Row>({
    name: 'find_outcome',
    text: `
      select state, dead_reason, due_at, scheduled_at, deadline_at, revision, idempotency_key
        from delivery
       where delivery_id = $1`,
    values: [deliveryId],
  });
  const row = delivery.rows[0];
  if (row === undefined) throw new Error(`there is no delivery ${deliveryId}`);
  return {
    state: row.state,
    deadReason: row.dead_reason ?? undefined,
    dueAt: row.due_at ?? undefined,
    scheduledAt: row.scheduled_at,
    deadlineAt: row.deadline_at ?? undefined,
    revision: row.revision,
    idempotencyKey: row.idempotency_key,
    attempts: await listAttempts(db, deliveryId),
    auditRecords: await listAuditRecords(db, deliveryId),
  };
}

async function listAttempts(db: Queryable, deliveryId: string): Promise<AttemptOutcome[]> {
  const result = await db.query<AttemptRow>({
    name: 'list_attempt_outcomes',
    text: `
      select attempt, claimed_by, outcome, status, error, started_at, finished_at, retry_after_seconds, next_due_at
        from attempt
       where delivery_id = $1
       order by attempt`,
    values: [deliveryId],
  });
  return result.rows.map((row) => ({
    attempt: row.attempt,
    claimedBy: row.claimed_by,
    outcome: row.outcome ?? undefined,
    status: row.status ?? undefined,
    error: row.error ?? undefined,
    startedAt: row.started_at ?? undefined,
    finishedAt: row.finished_at ?? undefined,
    retryAfterSeconds: row.retry_after_seconds ?? undefined,
    nextDueAt: row.next_due_at ?? undefined,
  }));
}

async function listAuditRecords(db: Queryable, deliveryId: string): Promise<AuditedOutcome[]> {
  const result = await db.query<AuditRow>({
    name: 'list_audited_outcomes',
    text: `
      select cycle, state, attempts, body_sha256, first_attempt_at, finished_at, deadline_at, revision, in_time
        from audit_record
       where delivery_id = $1
       order by cycle`,
    values: [deliveryId],
  });
  return result.rows.map((row) => ({
    cycle: row.cycle,
    state: row.state,
    attempts: row.attempts,
    bodySha256: row.body_sha256.toString('hex'),
    firstAttemptAt: row.first_attempt_at ?? undefined,
    finishedAt: row.finished_at,
    deadlineAt: row.deadline_at ?? undefined,
    revision: row.revision,
    inTime: row.in_time,
  }));
}
