import type { Publisher } from '../../broker/publisher.ts';
import { Refusal } from '../../domain/refusal.ts';
import type { State } from '../../domain/state.ts';
import { pause } from '../../runtime/backoff.ts';
import { killPoint } from '../../runtime/kill-point.ts';
import {
  countDeadLetters,
  type DeadLetterFilter,
  findReplayCandidate,
  listReplayCandidates,
  type ReplayCandidate,
} from '../../store/dead-letters.ts';
import { type Delivery, hastenDelivery } from '../../store/deliveries.ts';
import { isErased } from '../../store/evidence/erasures.ts';
import { findDelivery } from '../../store/find-delivery.ts';
import { type MoveRequest, moveDeliveries } from '../../store/moves.ts';
import type { Pool } from '../../store/pool.ts';
import type { Announcer } from '../announce.ts';
import type { Operator } from './operator.ts';

export interface DeliveryOperatorOptions {
  readonly pool: Pool;
  readonly publisher: Pick<Publisher, 'countReady'>;
  readonly announcer: Announcer;
  /** The queue of wake-ups that are due: what is replayed in bulk waits while it is long. */
  readonly deliveriesQueue: string;
  readonly timeoutMs: number;
}

export interface ReplayOptions {
  /** Only counts. */
  readonly dryRun: boolean;
  /** What is past its deadline is sent nevertheless, without one. */
  readonly force: boolean;
  /** Ends the replay after the page in hand. */
  readonly signal: AbortSignal;
  /** Told after every page. */
  readonly onProgress?: (report: ReplayReport) => void;
}

export interface ReplayReport {
  /** Dead letters that matched when the replay began. */
  readonly matched: number;
  readonly replayed: number;
  /** Left dead: their endpoint is disabled, or their deadline has passed. */
  readonly skipped: { readonly endpointDisabled: number; readonly deadlinePassed: number };
  /** False: it was ended early; what is left still matches. */
  readonly complete: boolean;
}

/** What people do to deliveries; each call throws a Refusal for what it will not do. */
export interface DeliveryOperator {
  /**
   * Sends a delivery again: one that waits at once, by an attempt on top of what the policy gives; one that is dead or
   * cancelled in a new cycle. Never one that was delivered.
   */
  retry(deliveryId: string, by: Operator & { readonly force: boolean }): Promise<void>;
  cancel(deliveryId: string, by: Operator): Promise<void>;
  /** Replays every dead letter that matches, in pages that wait for the broker and the workers. */
  replay(filter: DeadLetterFilter, options: ReplayOptions, by: Operator): Promise<ReplayReport>;
}

const PAGE = 500;
/** Wake-ups that may wait for a worker before the next page. */
const ENOUGH_WAITING = 2_000;
const BUSY_PAUSE_MS = 200;
/** With the size of a page, the rate at which a replay goes on whatever else there is to do. */
const LONGEST_WAIT_MS = 5_000;

export function createDeliveryOperator(options: DeliveryOperatorOptions): DeliveryOperator {
  const { pool, publisher, announcer, deliveriesQueue, timeoutMs } = options;

  async function requireDelivery(deliveryId: string): Promise<Delivery> {
    const found = await findDelivery(pool, deliveryId);
    if (found === undefined) throw new Refusal('not_found', `there is no delivery ${deliveryId}`);
    return found.delivery;
  }

  async function hasten(deliveryId: string, by: Operator): Promise<void> {
    const hastened = await hastenDelivery(pool, { deliveryId, actor: by.actor, trail: trailOf(by) });
    if (hastened === undefined) {
      const { state } = await requireDelivery(deliveryId);
      if (state === 'due') throw notNow(deliveryId, 'is due already and waits for a worker');
      throw notIn(state, deliveryId, 'something was done about it at the same moment');
    }
    void announcer.announce([{ deliveryId, remainingMs: 0, ...hastened }]);
  }

  async function cancelOnce(deliveryId: string, by: Operator): Promise<boolean> {
    const moved = await moveDeliveries(pool, {
      move: 'cancel',
      deliveryIds: [deliveryId],
      actor: by.actor,
      trail: trailOf(by),
      timeoutMs,
    });
    return moved.length > 0;
  }

  async function replayOne(deliveryId: string, by: Operator & { force: boolean }): Promise<void> {
    const candidate = await findReplayCandidate(pool, deliveryId, timeoutMs);
    if (candidate === undefined) throw new Refusal('not_found', `there is no delivery ${deliveryId}`);
    const obstacle = obstacleOf(candidate, by.force);
    if (obstacle === 'endpointDisabled') {
      throw new Refusal(
        'endpoint_disabled',
        `the endpoint of ${deliveryId} is disabled or deleted: resume it first`,
      );
    }
    if (obstacle === 'deadlinePassed') {
      throw new Refusal(
        'window_closed',
        `the deadline of ${deliveryId} has passed or leaves no time for a call: give force to send it nevertheless`,
      );
    }
    if ((await moveAgain([candidate], by)) > 0) return;
    if (await isErased(pool, deliveryId)) {
      throw new Refusal(
        'transition_not_allowed',
        `the payload of ${deliveryId} was erased: there is nothing to send`,
      );
    }
    const { state } = await requireDelivery(deliveryId);
    throw notIn(state, deliveryId, 'somebody else was first');
  }

  /** Starts a new cycle of each, and announces what is due by it. */
  async function moveAgain(candidates: readonly ReplayCandidate[], by: Operator): Promise<number> {
    let count = 0;
    for (const group of groupsOf(candidates)) {
      const moved = await moveDeliveries(pool, {
        ...group,
        actor: by.actor,
        trail: trailOf(by, group.withoutDeadline ? { without_deadline: true } : {}),
        timeoutMs,
      });
      killPoint('replay.committed');
      await announcer.announce(moved.filter((m) => m.state === 'due'));
      count += moved.length;
    }
    return count;
  }

  /**
   * A replay is no stampede: each page waits until the one before is at the broker, and until the workers have room; but
   * not for ever, for they may be down, or busy with other things for hours.
   */
  async function waitForRoom(signal: AbortSignal): Promise<void> {
    for (let waitedMs = 0; waitedMs < LONGEST_WAIT_MS; waitedMs += BUSY_PAUSE_MS) {
      if (signal.aborted || (await countWaiting()) <= ENOUGH_WAITING) return;
      await pause(BUSY_PAUSE_MS, signal);
    }
  }

  /** Without a broker nothing piles up there: what is due waits in the database. */
  async function countWaiting(): Promise<number> {
    try {
      return (await publisher.countReady(deliveriesQueue)) ?? 0;
    } catch {
      return 0;
    }
  }

  return {
    async retry(deliveryId, by) {
      const { state } = await requireDelivery(deliveryId);
      switch (state) {
        case 'due':
          return hasten(deliveryId, by);
        case 'dead_lettered':
        case 'cancelled':
          return replayOne(deliveryId, by);
        case 'in_flight':
          throw notNow(deliveryId, 'has an attempt under way: wait for its outcome');
        case 'held':
          throw notNow(
            deliveryId,
            'is held, because its endpoint is paused or disabled: resume the endpoint',
          );
        case 'delivered':
          throw notIn(state, deliveryId, 'it is never sent again, not even by force');
      }
    },

    async cancel(deliveryId, by) {
      if (await cancelOnce(deliveryId, by)) return;
      const { state } = await requireDelivery(deliveryId);
      // It waits, so it was rescheduled at the same moment: by now the cancellation knows of that.
      if ((state === 'due' || state === 'held') && (await cancelOnce(deliveryId, by))) return;
      if (state === 'in_flight') {
        throw notNow(
          deliveryId,
          'has an attempt under way, which cannot be called back: try again when it has ended',
        );
      }
      throw notIn(state, deliveryId, 'only what waits can be cancelled');
    },

    async replay(filter, { dryRun, force, signal, onProgress }, by) {
      const { matched, at } = await countDeadLetters(pool, filter);
      // What dies again while this runs is not its concern, or it would never end.
      const began = { ...filter, deadBefore: earliest(filter.deadBefore, at) };
      let replayed = 0;
      const skipped = { endpointDisabled: 0, deadlinePassed: 0 };
      let after = '';
      for (;;) {
        if (signal.aborted) return { matched, replayed, skipped, complete: false };
        const page = await listReplayCandidates(pool, began, { after, limit: PAGE, timeoutMs });
        const able = page.filter((candidate) => {
          const obstacle = obstacleOf(candidate, force);
          if (obstacle !== undefined) skipped[obstacle] += 1;
          return obstacle === undefined;
        });
        if (!dryRun && able.length > 0) {
          replayed += await moveAgain(able, by);
          await waitForRoom(signal);
        }
        const last = page.at(-1);
        if (last === undefined || page.length < PAGE) break;
        after = last.deliveryId;
        onProgress?.({ matched, replayed, skipped, complete: false });
      }
      return { matched, replayed, skipped, complete: true };
    },
  };
}

function obstacleOf(
  { endpointStatus, isTooLate }: ReplayCandidate,
  force: boolean,
): keyof ReplayReport['skipped'] | undefined {
  if (endpointStatus === 'disabled') return 'endpointDisabled';
  return isTooLate && !force ? 'deadlinePassed' : undefined;
}

/** One move each for what an active and what a paused endpoint takes, with its deadline or without. */
function groupsOf(
  candidates: readonly ReplayCandidate[],
): Pick<MoveRequest & { withoutDeadline: boolean }, 'move' | 'deliveryIds' | 'withoutDeadline'>[] {
  return (['replay', 'replay_held'] as const).flatMap((move) =>
    [false, true].flatMap((withoutDeadline) => {
      const deliveryIds = candidates
        .filter((c) => (c.endpointStatus === 'paused') === (move === 'replay_held'))
        .filter((c) => c.isTooLate === withoutDeadline)
        .map((c) => c.deliveryId);
      return deliveryIds.length === 0 ? [] : [{ move, deliveryIds, withoutDeadline }];
    }),
  );
}

function earliest(a: Date | undefined, b: Date): Date {
  return a === undefined || a > b ? b : a;
}

function trailOf({ reason }: Operator, more: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({ reason, ...more });
}

function notNow(deliveryId: string, why: string): Refusal {
  return new Refusal('transition_not_allowed', `${deliveryId} ${why}`);
}

/** Not in the state it is in; that it was delivered is said by a code of its own. */
function notIn(state: State, deliveryId: string, why: string): Refusal {
  return state === 'delivered'
    ? new Refusal('already_delivered', `${deliveryId} was delivered: ${why}`)
    : notNow(deliveryId, `is ${state}: ${why}`);
}
