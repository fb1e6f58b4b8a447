import type { PracticeCall } from '../../receiver/practice.ts';
import type { DeliveryOutcome } from '../../store/outcomes.ts';
import { type Finding, finding } from './drill.ts';
import type { Target } from './stand.ts';

/** The three that every drill ends in; the receiver's ledger says what took effect, not our own tables. */
export function judgeOutcome({ receiver }: Target, outcome: DeliveryOutcome): Finding[] {
  const effects = receiver.effects().filter((effect) => effect.key === outcome.idempotencyKey);
  return [
    finding('business effects at the receiver', 1, effects.length),
    finding('audit records', 1, outcome.auditRecords.length),
    finding('state', 'delivered', describeState(outcome)),
  ];
}

/** Whether every call carried the same key, the same bytes and a good signature. */
export function judgeSameness({ receiver }: Target, outcome: DeliveryOutcome): Finding {
  const calls = callsOf(receiver.calls(), outcome);
  const kinds = new Set(calls.map((call) => `${call.key} ${call.bodySha256} ${String(call.verified)}`));
  return finding('keys, bodies and signatures that differ', 0, Math.max(0, kinds.size - 1));
}

/** The calls of one delivery. */
export function callsOf(
  calls: readonly PracticeCall[],
  { idempotencyKey }: Pick<DeliveryOutcome, 'idempotencyKey'>,
): readonly PracticeCall[] {
  return calls.filter((call) => call.key === idempotencyKey);
}

/** Attempts that started before the delivery was due, by the database's clock. */
export function countEarly({ attempts, scheduledAt }: DeliveryOutcome): number {
  const dueAts = [scheduledAt, ...attempts.map((attempt) => attempt.nextDueAt)];
  return attempts.filter(({ startedAt }, i) => {
    const dueAt = dueAts[i];
    return startedAt !== undefined && dueAt !== undefined && startedAt < dueAt;
  }).length;
}

function describeState({ state, deadReason }: DeliveryOutcome): string {
  return deadReason === undefined ? state : `${state} (${deadReason})`;
}
