import type { DueProof } from '../../src/domain/calendar/calendars.ts';
import { timingOf, writeTiming } from '../../src/pipeline/timing/timing.ts';
import { hastenDelivery } from '../../src/store/deliveries.ts';
import { type Move, moveDeliveries } from '../../src/store/moves.ts';
import { inTransaction } from '../../src/store/pool.ts';
import { findReminder } from '../../src/store/reminders.ts';
import { findBody, lockDelivery } from '../../src/store/reschedules.ts';
import { settleAttempts } from '../../src/store/settle.ts';
import { claimOne } from '../support/attempts.ts';
import { openDestination, publishTo } from '../support/flow.ts';
import type { TestProduct } from '../support/product.ts';
import { dueNow } from '../support/reminders.ts';
import {
  HOUR_MS,
  LEASE_HOURS,
  type Model,
  type ModelDelivery,
  type ModelResult,
  shown,
} from './delivery-model.ts';

/** The real store, driven by the same commands as the model, with the same answers. */
export interface World {
  claim(n: number, asked: { attempt: number; holder: string; knows: boolean }): Promise<string>;
  settle(n: number, result: ModelResult): Promise<string>;
  move(n: number, by: Move): Promise<boolean>;
  hasten(n: number): Promise<boolean>;
  reschedule(n: number, to: { dueIn: number; deadlineIn: number }): Promise<boolean>;
  setStatus(status: Model['status']): Promise<void>;
  /** Turns every instant back, which is the same as turning the clock on. */
  advance(hours: number): Promise<void>;
  /** What the tables say, in the model's words. */
  look(): Promise<Model>;
}

/** A call takes next to nothing of the model's hours. */
export const TIMEOUT_MS = 1_000;
const trail = '{}';

/** A reminder with a deadline ten hours away and an event with none, both due now, for one endpoint. */
export async function openWorld(product: TestProduct): Promise<World> {
  const { pool } = product.parts;
  const destination = await openDestination(product);
  await destination.receiver.close();
  const { reminder } = await product.reminders.schedule(dueNow({ endpoint: destination.name }));
  const event = await publishTo(product, destination);
  const deliveryIds = [reminder.deliveryId, event.deliveryId];
  await pool.query('update delivery set due_at = now(), scheduled_at = now() where delivery_id = any($1)', [
    deliveryIds,
  ]);
  await pool.query(`update delivery set deadline_at = now() + interval '10 hours' where delivery_id = $1`, [
    reminder.deliveryId,
  ]);
  const idOf = (n: number): string => deliveryIds[n] as string;
  const inHours = (hours: number): Date => new Date(Date.now() + hours * HOUR_MS);

  return {
    async claim(n, { attempt, holder, knows }) {
      const verdict = await claimOne(pool, idOf(n), {
        attempt,
        leaseMs: LEASE_HOURS * HOUR_MS,
        timeoutMs: TIMEOUT_MS,
        holder,
        inHand: new Set(knows ? deliveryIds : []),
      });
      return verdict?.verdict ?? 'nothing';
    },
    async settle(n, { delayHours, deadReason, ...result }) {
      const settlement = {
        ...result,
        deliveryId: idOf(n),
        endpointFailed: result.outcome === 'retryable' || result.outcome === 'terminal',
        gone: false,
        delayMs: delayHours * HOUR_MS,
        retryAfterClamped: false,
        startedAgoMs: 0,
        ...(deadReason === undefined ? {} : { deadReason: deadReason as 'attempts_exhausted' }),
        ...(result.handedBack ? { error: 'not_sent' } : {}),
        trail,
      };
      const [settled] = await settleAttempts(pool, [settlement], { holder: 'model', timeoutMs: TIMEOUT_MS });
      // A retry waits a second at least; the model counts in hours, and calls that now.
      await pool.query(
        `update delivery set due_at = now() where delivery_id = $1 and due_at between now() and now() + interval '2 seconds'`,
        [idOf(n)],
      );
      return settled?.effect ?? 'missing';
    },
    async move(n, by) {
      const moved = await moveDeliveries(pool, {
        move: by,
        deliveryIds: [idOf(n)],
        actor: 'model',
        trail,
        timeoutMs: TIMEOUT_MS,
      });
      return moved.length === 1;
    },
    hasten: async (n) =>
      (await hastenDelivery(pool, { deliveryId: idOf(n), actor: 'model', trail })) !== undefined,
    reschedule: (n, to) =>
      inTransaction(pool, async (db) => {
        await lockDelivery(db, idOf(n));
        const stored = await findReminder(db, reminder.reminderId);
        const body = await findBody(db, reminder.reminderId);
        if (stored === undefined || body === undefined) throw new Error('the reminder is gone');
        const { moved } = await writeTiming(db, {
          reminder: stored,
          body,
          timing: timingOf(stored),
          due: {
            dueAt: inHours(to.dueIn),
            deadlineAt: inHours(to.deadlineIn),
            timeZone: 'UTC',
            proof: stored.dueProof as DueProof,
            steps: [],
          },
          event: 'reschedule',
          detail: {},
          actor: 'model',
          timeoutMs: TIMEOUT_MS,
        });
        return moved !== undefined;
      }),
    async setStatus(status) {
      await pool.query('update endpoint set status = $2 where endpoint_id = $1', [
        destination.endpointId,
        status,
      ]);
    },
    async advance(hours) {
      await pool.query(
        `update delivery
            set due_at = due_at - $2 * interval '1 hour',
                scheduled_at = scheduled_at - $2 * interval '1 hour',
                deadline_at = deadline_at - $2 * interval '1 hour',
                claim_expires_at = claim_expires_at - $2 * interval '1 hour'
          where delivery_id = any($1)`,
        [deliveryIds, hours],
      );
      await pool.query(
        `update attempt
            set claimed_at = claimed_at - $2 * interval '1 hour',
                next_due_at = next_due_at - $2 * interval '1 hour'
          where delivery_id = any($1)`,
        [deliveryIds, hours],
      );
    },
    async look() {
      const { rows } = await pool.query(LOOK, [deliveryIds, destination.endpointId]);
      const [first] = rows;
      return shown({
        status: first.status,
        failures: first.failures,
        deliveries: rows.map((row) => readDelivery(row)),
      });
    },
  };
}

const LOOK = `
  select e.status, e.consecutive_failures as failures, d.state, d.attempt, d.cycle, d.attempt_base as base, d.revision,
         d.manual_attempts + d.unsent_attempts as uncounted, d.dead_reason as "deadReason", d.claimed_by as holder,
         extract(epoch from d.due_at - now())::float8 / 3600 as "dueIn",
         extract(epoch from d.scheduled_at - now())::float8 / 3600 as "scheduledIn",
         extract(epoch from d.deadline_at - now())::float8 / 3600 as "deadlineIn",
         extract(epoch from d.claim_expires_at - now())::float8 / 3600 as "leaseIn",
         coalesce((select json_agg(json_build_object('outcome', a.outcome, 'late', a.late) order by a.attempt)
                     from attempt a where a.delivery_id = d.delivery_id), '[]') as attempts,
         (select coalesce(array_agg(r.state order by r.cycle), '{}') from audit_record r
           where r.delivery_id = d.delivery_id) as records,
         (select array_agg(t.event order by t.entry) from trail t where t.delivery_id = d.delivery_id) as trail
    from delivery d
    join endpoint e on e.endpoint_id = $2
   where d.delivery_id = any($1)
   order by d.reminder_id is null`;

const OF_THE_ENDPOINT = ['status', 'failures'];

/** A row in the model's words. */
function readDelivery(row: Readonly<Record<string, unknown>>): ModelDelivery {
  const entries = Object.entries(row)
    .filter(([name]) => !OF_THE_ENDPOINT.includes(name))
    .map(([name, value]) => [name, value ?? undefined]);
  const delivery = Object.fromEntries(entries) as ModelDelivery;
  return {
    ...delivery,
    attempts: delivery.attempts.map((a) => ({ outcome: a.outcome ?? undefined, late: a.late })),
  };
}
