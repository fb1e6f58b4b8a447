import { type Drill, finding } from './drill.ts';
import { callsOf, judgeOutcome, judgeSameness } from './judge.ts';
import type { DeliveryOutcome } from './outcome.ts';
import { eventually } from './stand.ts';

const ASKED_SECONDS = 900;
const COPIES = 10;

/**
 * Answers 429 with Retry-After: 900, looks at what was stored, and sends wake-ups too early. So that nobody waits for a
 * quarter of an hour, the delivery is then sent at once as `duepost deliveries retry` does.
 */
export const retryAfter: Drill = {
  name: 'retry-after',
  title: 'answer 429 with Retry-After: 900',
  async run(stand) {
    await stand.ensureWorker();
    const target = await stand.openTarget('drill-retry-after', {
      answers: [429, 200],
      retryAfterSeconds: ASKED_SECONDS,
    });
    const deliveryId = await stand.publish(target);
    const before = await eventually(async () => {
      const outcome = await stand.outcome(deliveryId);
      return outcome.attempts[0]?.outcome === undefined ? undefined : outcome;
    });
    await Promise.all(Array.from({ length: COPIES }, () => stand.wake(deliveryId, 2)));
    // Behind them in the queue: once this one is through, they are.
    await stand.ended(await stand.publish(target));
    const callsBefore = callsOf(target.receiver.calls(), before).length;
    await stand.deliveries.retry(deliveryId, {
      actor: stand.actor,
      reason: 'the drill does not wait for 900 s',
      force: false,
    });
    const outcome = await stand.ended(deliveryId);
    return [
      finding('Retry-After stored', ASKED_SECONDS, before.attempts[0]?.retryAfterSeconds ?? 'none'),
      finding('next attempt due after the answer', `${ASKED_SECONDS} s`, `${waitSeconds(before)} s`),
      finding(`calls after ${COPIES} early wake-ups`, 1, callsBefore),
      finding('calls in all, the last by hand', 2, callsOf(target.receiver.calls(), outcome).length),
      judgeSameness(target, outcome),
      ...judgeOutcome(target, outcome),
    ];
  },
};

/** Whole seconds from the end of the first attempt to the next one; settling took some milliseconds of them. */
function waitSeconds({ attempts }: DeliveryOutcome): number | string {
  const { finishedAt, nextDueAt } = attempts[0] ?? {};
  if (finishedAt === undefined || nextDueAt === undefined) return 'none';
  return Math.floor((nextDueAt.getTime() - finishedAt.getTime()) / 1000);
}
