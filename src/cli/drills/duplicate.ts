import { type Drill, finding } from './drill.ts';
import { callsOf, countEarly, judgeOutcome } from './judge.ts';
import { eventually } from './stand.ts';

const COPIES = 20;
const DUE_IN_MS = 2_000;
const CALL_TAKES_MS = 700;

/** Publishes one wake-up many times: before the delivery is due, while its call is under way, and after its end. */
export const duplicate: Drill = {
  name: 'duplicate',
  title: 'replay a duplicate wake-up, before, during and after',
  async run(stand) {
    await stand.ensureWorker();
    const target = await stand.openTarget('drill-duplicate', { delayMs: CALL_TAKES_MS });
    const deliveryId = await stand.publish(target, new Date(Date.now() + DUE_IN_MS));
    const copies = async (attempt: number): Promise<void> => {
      await Promise.all(Array.from({ length: COPIES }, () => stand.wake(deliveryId, attempt)));
    };
    await copies(1);
    await eventually(async () =>
      (await stand.outcome(deliveryId)).state === 'in_flight' ? true : undefined,
    );
    await copies(1);
    await copies(2);
    await stand.ended(deliveryId);
    await copies(1);
    await copies(2);
    // Behind them in the queue: once this one is through, they are.
    await stand.ended(await stand.publish(target));
    const outcome = await stand.ended(deliveryId);
    return [
      finding('calls', 1, callsOf(target.receiver.calls(), outcome).length),
      finding('attempts', 1, outcome.attempts.length),
      finding('attempts before due_at', 0, countEarly(outcome)),
      ...judgeOutcome(target, outcome),
    ];
  },
};
