import { openRescheduler } from '../../roles/parts.ts';
import { type Drill, finding } from './drill.ts';
import { callsOf, judgeOutcome, judgeSameness } from './judge.ts';
import { dateIn, eventually } from './stand.ts';

const CALL_TAKES_MS = 800;

/** Moves the renewal date backwards during the first call, which then fails: the retry runs under the new timing. */
export const moveRenewal: Drill = {
  name: 'move-renewal',
  title: 'move the renewal date backwards while a delivery is in flight',
  async run(stand) {
    await stand.ensureWorker();
    const target = await stand.openTarget('drill-move-renewal', {
      answers: [503, 200],
      delayMs: CALL_TAKES_MS,
      policy: { kind: 'schedule', retry_schedule: [0, 1], max_attempts: 4 },
    });
    const { reminderId, deliveryId } = await stand.remind(target);
    await eventually(async () =>
      (await stand.outcome(deliveryId)).state === 'in_flight' ? true : undefined,
    );
    const moved = await openRescheduler(stand.parts, stand.config).reschedule({
      reference: { reminderId },
      renewalDate: dateIn(30),
      actor: stand.actor,
    });
    const outcome = await stand.ended(deliveryId);
    const record = outcome.auditRecords[0];
    return [
      finding('what moved', 'timing_only', moved.applied),
      finding('calls', 2, callsOf(target.receiver.calls(), outcome).length),
      judgeSameness(target, outcome),
      finding(
        'deadline in the audit record',
        moved.reminder.deadlineAt.toISOString(),
        record?.deadlineAt?.toISOString() ?? 'none',
      ),
      finding('revision in the audit record', 2, record?.revision ?? 0),
      ...judgeOutcome(target, outcome),
    ];
  },
};
