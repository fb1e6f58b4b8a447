import type { Reminder } from '../../store/reminders.ts';
import { callsOf } from './judge.ts';
import type { DeliveryOutcome } from './outcome.ts';
import type { DrillReceiver } from './receiver.ts';

/** Contract, date, what was sent, when, and why it counts once. */
export interface Evidence {
  readonly contract_ref: string;
  readonly renewal_date: string;
  readonly deadline_at: string;
  readonly due_at: string;
  readonly revision: number;
  readonly state: string;
  readonly in_time: boolean;
  readonly delivery_id: string;
  readonly idempotency_key: string;
  readonly body_sha256: string;
  readonly attempts: readonly {
    readonly attempt: number;
    readonly status: number | null;
    readonly started_at: string | null;
  }[];
  readonly finished_at: string | null;
  readonly audit_records: number;
  readonly calls: number;
  /** Different keys or bodies among the calls; one is what makes them one thing. */
  readonly different_calls: number;
  /** As the receiver's ledger has it. */
  readonly effects: number;
}

/** Puts our records and the receiver's ledger side by side. */
export function describeEvidence(
  reminder: Reminder,
  outcome: DeliveryOutcome,
  receiver: DrillReceiver,
): Evidence {
  const record = outcome.auditRecords.at(-1);
  const calls = callsOf(receiver.calls(), outcome);
  return {
    contract_ref: reminder.contractRef,
    renewal_date: reminder.renewalDate,
    deadline_at: (record?.deadlineAt ?? reminder.deadlineAt).toISOString(),
    due_at: outcome.scheduledAt.toISOString(),
    revision: outcome.revision,
    state: outcome.state,
    in_time: record?.inTime ?? false,
    delivery_id: reminder.deliveryId,
    idempotency_key: outcome.idempotencyKey,
    body_sha256: record?.bodySha256.toString('hex') ?? '',
    attempts: outcome.attempts.map(({ attempt, status, startedAt }) => ({
      attempt,
      status: status ?? null,
      started_at: startedAt?.toISOString() ?? null,
    })),
    finished_at: record?.finishedAt.toISOString() ?? null,
    audit_records: outcome.auditRecords.length,
    calls: calls.length,
    different_calls: new Set(calls.map((call) => `${call.key} ${call.bodySha256}`)).size,
    effects: receiver.countEffects(outcome.idempotencyKey) ?? 0,
  };
}

export function formatEvidence(evidence: Evidence): string {
  const { attempts, calls, effects, audit_records: records } = evidence;
  const tries = attempts.map((a) => `${a.status ?? 'no answer'} at ${clock(a.started_at)}`).join(', ');
  return [
    `  ${evidence.contract_ref} renews ${evidence.renewal_date}`,
    `    sent       delivery ${evidence.delivery_id}, body SHA-256 ${evidence.body_sha256}`,
    `    when       due ${evidence.due_at}, deadline ${evidence.deadline_at}`,
    `               ${tries}; ${evidence.state}${evidence.in_time ? ' in time' : ''} ${evidence.finished_at ?? ''}`,
    `    once       ${count(calls, 'call')} with ${count(evidence.different_calls, 'key and body', 'keys or bodies')} (${evidence.idempotency_key}):`,
    `               the receiver recorded ${count(effects, 'effect')}, duepost ${count(records, 'audit record')} (revision ${evidence.revision})`,
    '',
  ].join('\n');
}

function clock(instant: string | null): string {
  return instant?.slice(11, 23) ?? 'an unknown time';
}

function count(n: number, one: string, many = `${one}s`): string {
  return `${n} ${n === 1 ? one : many}`;
}
