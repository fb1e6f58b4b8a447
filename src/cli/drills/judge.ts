import { type Finding, finding } from './drill.ts';
import type { DeliveryOutcome } from './outcome.ts';
import type { DrillReceiver } from './receiver.ts';
import type { Target } from './stand.ts';

/** What every drill ends in; the receiver's ledger says what took effect, not our own tables. */
export function judgeOutcome({ receiver }: Target, outcome: DeliveryOutcome): Finding[] {
  return [
    ...judgeEffects(receiver, outcome),
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
export function callsOf<Call extends { readonly key: string | undefined }>(
  calls: readonly Call[],
  { idempotencyKey }: Pick<DeliveryOutcome, 'idempotencyKey'>,
): readonly Call[] {
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

/** A service of somebody's own is asked for less: that it took every call, and said the same each time. */
function judgeEffects(receiver: DrillReceiver, { idempotencyKey: key }: DeliveryOutcome): Finding[] {
  const effects = receiver.countEffects(key);
  if (effects !== undefined) return [finding('business effects at the receiver', 1, effects)];
  const handedOn = receiver.handedOn().find((each) => each.key === key);
  const answers = handedOn?.answers ?? [];
  return [
    finding('answers of the service', '2xx', [...new Set(answers.map(describeAnswer))].join(', ')),
    finding('receipts that differ', 0, Math.max(0, (handedOn?.receipts.length ?? 0) - 1)),
  ];
}

/** A status; which of the 2xx it is makes no difference. */
export function describeAnswer(status: number | undefined): string {
  if (status === undefined) return 'none';
  return status >= 200 && status <= 299 ? '2xx' : String(status);
}

function describeState({ state, deadReason }: DeliveryOutcome): string {
  return deadReason === undefined ? state : `${state} (${deadReason})`;
}
