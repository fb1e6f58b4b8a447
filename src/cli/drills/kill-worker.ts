import type { OwnProcess } from '../../runtime/own-process.ts';
import { type Drill, finding } from './drill.ts';
import { callsOf, judgeOutcome } from './judge.ts';
import type { DeliveryOutcome } from './outcome.ts';
import { eventually, type Stand, type Target } from './stand.ts';

/** Other workers take their turns at the queue: so many deliveries until the doomed one must have had one. */
const MOST_DELIVERIES = 50;
const MOST_WORKERS = 3;

/**
 * Starts a worker that kills itself with SIGKILL when it is about to acknowledge, gives it something to deliver, and
 * looks at what became of that: the outcome is stored, the wake-up comes again, nothing is sent a second time.
 */
export const killWorker: Drill = {
  name: 'kill-worker',
  title: 'kill the worker between commit and acknowledgement',
  async run(stand) {
    const target = await stand.openTarget('drill-kill-worker', {});
    const { worker, deliveryId, atDeath } = await killOne(stand, target);
    await stand.ensureWorker();
    // What comes again goes to the head of the queue: once this one is through, the other has been looked at.
    await stand.ended(await stand.publish(target));
    const outcome = await stand.ended(deliveryId);
    return [
      finding('worker ended by', 'SIGKILL', (await worker.ended).signal ?? 'itself'),
      finding('outcome stored when it died', 'delivered', atDeath.attempts[0]?.outcome ?? 'none'),
      finding('calls', 1, callsOf(target.receiver.calls(), outcome).length),
      ...judgeOutcome(target, outcome),
    ];
  },
};

async function killOne(
  stand: Stand,
  target: Target,
): Promise<{ worker: OwnProcess; deliveryId: string; atDeath: DeliveryOutcome }> {
  for (let workers = 0; workers < MOST_WORKERS; workers += 1) {
    const worker = await stand.startRoles(['worker'], { DUEPOST_KILL_POINT: 'ack.due' });
    const deliveryIds: string[] = [];
    while (!worker.hasEnded() && deliveryIds.length < MOST_DELIVERIES) {
      const deliveryId = await stand.publish(target);
      deliveryIds.push(deliveryId);
      await eventually(async () =>
        worker.hasEnded() || (await stand.outcome(deliveryId)).state === 'delivered' ? true : undefined,
      );
    }
    await worker.stop();
    for (const deliveryId of deliveryIds) {
      const atDeath = await stand.outcome(deliveryId);
      if (atDeath.attempts.some((a) => a.claimedBy.includes(`#${worker.pid}-`)))
        return { worker, deliveryId, atDeath };
    }
    // It died of what somebody else sent.
  }
  throw new Error('no worker died with a delivery of this drill in its hands; is the stack very busy?');
}
