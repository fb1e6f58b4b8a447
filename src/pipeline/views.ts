import type { Endpoint } from '../store/endpoints.ts';
import type { Reminder } from '../store/reminders.ts';
import type { EventResult } from './accept-events.ts';

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
    deliveries: event.deliveries,
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
    headers: Object.fromEntries(Object.keys(endpoint.headers).map((name) => [name, '(not shown)'])),
    consecutive_failures: endpoint.consecutiveFailures,
    created_at: endpoint.createdAt.toISOString(),
    updated_at: endpoint.updatedAt.toISOString(),
  };
}
