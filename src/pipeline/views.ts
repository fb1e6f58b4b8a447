import { NOT_SHOWN } from '../domain/endpoint-headers.ts';
import { parsePolicy, policyInUse } from '../domain/policy.ts';
import type { DeadLetter } from '../store/dead-letters.ts';
import type { Delivery } from '../store/deliveries.ts';
import type { Endpoint } from '../store/endpoints.ts';
import type { AuditRecord } from '../store/evidence/audit.ts';
import type { Attempt } from '../store/find-delivery.ts';
import type { Reminder } from '../store/reminders.ts';
import type { EventResult } from './accept/events.ts';

/** A reminder as callers see it (contract section 12). */
export function reminderView(reminder: Reminder, duplicate: boolean): Record<string, unknown> {
  return {
    reminder_id: reminder.reminderId,
    delivery_id: reminder.deliveryId,
    contract_ref: reminder.contractRef,
    endpoint_id: reminder.endpointId,
    type: reminder.type,
    renewal_date: reminder.renewalDate,
    notice_period: reminder.noticePeriod,
    jurisdiction: reminder.jurisdiction,
    time_zone: reminder.timeZone,
    due_at: reminder.dueAt.toISOString(),
    deadline_at: reminder.deadlineAt.toISOString(),
    late_start: reminder.lateStart,
    state: reminder.state,
    revision: reminder.revision,
    duplicate,
    idempotency_key: reminder.idempotencyKey,
    due_proof: reminder.dueProof,
    created_at: reminder.createdAt.toISOString(),
  };
}

/** An accepted event as callers see it (contract section 12). */
export function eventView(event: EventResult): Record<string, unknown> {
  return {
    event_id: event.eventId,
    type: event.type,
    duplicate: event.duplicate,
    // As the database gives it back, its members are in another order.
    deliveries: event.deliveries.map(({ delivery_id, endpoint_id, state }) => ({
      delivery_id,
      endpoint_id,
      state,
    })),
  };
}

/** An endpoint as callers see it (contract section 12); values of its headers may be credentials and are not shown. */
export function endpointView(
  endpoint: Endpoint,
  policy: unknown = endpoint.policy ?? null,
): Record<string, unknown> {
  return {
    endpoint_id: endpoint.endpointId,
    name: endpoint.name,
    url: endpoint.url,
    status: endpoint.status,
    status_reason: endpoint.statusReason ?? null,
    mode: endpoint.mode,
    event_types: endpoint.eventTypes,
    policy,
    max_in_flight: endpoint.maxInFlight ?? null,
    headers: Object.fromEntries(Object.keys(endpoint.headers).map((name) => [name, NOT_SHOWN])),
    tls: endpoint.tls ?? null,
    consecutive_failures: endpoint.consecutiveFailures,
    created_at: endpoint.createdAt.toISOString(),
    updated_at: endpoint.updatedAt.toISOString(),
  };
}

/** A delivery as callers see it (contract section 12), without its attempts. */
export function deliveryView(delivery: Delivery): Record<string, unknown> {
  const policy = policyInUse(delivery.policy === undefined ? undefined : parsePolicy(delivery.policy), {
    kind: delivery.reminderId === undefined ? 'event' : 'reminder',
    hasDeadline: delivery.deadlineAt !== undefined,
  });
  return {
    delivery_id: delivery.deliveryId,
    state: delivery.state,
    // Of one that has ended: when it was to be sent in the first place.
    due_at: (delivery.dueAt ?? delivery.scheduledAt).toISOString(),
    scheduled_at: delivery.scheduledAt.toISOString(),
    deadline_at: delivery.deadlineAt?.toISOString() ?? null,
    attempt: delivery.attempt,
    max_attempts: policy.maxAttempts,
    attempts_in_cycle: delivery.attempt - delivery.attemptBase,
    manual_attempts: delivery.manualAttempts,
    cycle: delivery.cycle,
    revision: delivery.revision,
    idempotency_key: delivery.idempotencyKey,
    contract_ref: delivery.contractRef ?? null,
    endpoint_id: delivery.endpointId,
    endpoint_name: delivery.endpointName,
    endpoint_status: delivery.endpointStatus,
    reminder_id: delivery.reminderId ?? null,
    event_id: delivery.eventId ?? null,
    dead_reason: delivery.deadReason ?? null,
    claimed_by: delivery.claimedBy ?? null,
    claim_expires_at: delivery.claimExpiresAt?.toISOString() ?? null,
    created_at: delivery.createdAt.toISOString(),
    ended_at: delivery.endedAt?.toISOString() ?? null,
  };
}

/** An attempt as callers see it (contract section 12); its outcome is null while it is under way. */
export function attemptView(attempt: Attempt): Record<string, unknown> {
  return {
    attempt: attempt.attempt,
    cycle: attempt.cycle,
    outcome: attempt.outcome ?? null,
    late: attempt.late,
    status: attempt.status ?? null,
    error: attempt.error ?? null,
    error_detail: attempt.detail ?? null,
    claimed_at: attempt.claimedAt.toISOString(),
    claimed_by: attempt.claimedBy,
    started_at: attempt.startedAt?.toISOString() ?? null,
    finished_at: attempt.finishedAt?.toISOString() ?? null,
    duration_ms: attempt.durationMs ?? null,
    url: attempt.url,
    retry_after_seconds: attempt.retryAfterSeconds ?? null,
    retry_after_clamped: attempt.retryAfterClamped,
    next_due_at: attempt.nextDueAt?.toISOString() ?? null,
    response_excerpt: attempt.responseExcerpt ?? null,
    shadow: attempt.shadow,
  };
}

/** A dead letter as callers see it: the delivery, and what its latest attempt met. */
export function deadLetterView(deadLetter: DeadLetter): Record<string, unknown> {
  return {
    ...deliveryView(deadLetter.delivery),
    last_outcome: deadLetter.lastOutcome ?? null,
    last_status: deadLetter.lastStatus ?? null,
    last_error: deadLetter.lastError ?? null,
  };
}

/** An audit record as callers see it (contract section 12). */
export function auditView(record: AuditRecord): Record<string, unknown> {
  return {
    delivery_id: record.deliveryId,
    kind: record.kind,
    cycle: record.cycle,
    contract_ref: record.contractRef ?? null,
    state: record.state,
    dead_reason: record.deadReason ?? null,
    idempotency_key: record.idempotencyKey,
    body_sha256: record.bodySha256.toString('hex'),
    attempts: record.attempts,
    first_attempt_at: record.firstAttemptAt?.toISOString() ?? null,
    finished_at: record.finishedAt.toISOString(),
    due_at: record.dueAt.toISOString(),
    deadline_at: record.deadlineAt?.toISOString() ?? null,
    revision: record.revision,
    in_time: record.inTime,
    shadow: record.shadow,
    actor: record.actor,
    endpoint_id: record.endpointId,
    endpoint_url: record.endpointUrl,
  };
}
