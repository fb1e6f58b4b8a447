import type { Incoming } from '../../broker/incoming.ts';
import type { Publisher } from '../../broker/publisher.ts';
import { setAside } from '../../broker/set-aside.ts';
import { parseWakeUp, type WakeUp } from '../../domain/wakeup.ts';
import { pause } from '../../runtime/backoff.ts';
import { killPoint } from '../../runtime/kill-point.ts';
import type { Log } from '../../runtime/log.ts';
import { readTraceParent, type Traced, type Traces } from '../../runtime/traces.ts';
import { moveDeliveries } from '../../store/moves.ts';
import type { Queryable } from '../../store/pool.ts';
import type { Claim, Verdict } from '../../store/verdict.ts';
import type { Announcer } from '../announce.ts';
import { type AttemptOptions, attemptDelivery, type HeldClaim } from './attempt.ts';
import { logAttempt } from './attempt-line.ts';
import { type Asked, createClaimer } from './claim.ts';
import { awayMs } from './crowd.ts';
import type { CallTarget, EndpointCache } from './endpoint-cache.ts';
import type { DeliveryMeter } from './measure-deliveries.ts';
import type { Result, Settler } from './settle.ts';
import { createSlots } from './slots.ts';
import type { TellDelivered } from './tell-delivered.ts';
import { traceAttempt } from './trace-attempt.ts';
import { handBack, isLastAttempt, lapse } from './unknown-outcome.ts';

/** Takes wake-ups: claim, call, settle; whoever consumes them acknowledges when `handle` resolves. */
export interface Deliverer {
  /** Rejects only for a fault of ours: the wake-up must come again. */
  handle(message: Incoming): Promise<void>;
  /** How many calls to endpoints are under way. */
  callsInFlight(): number;
}

export interface DelivererOptions extends AttemptOptions {
  readonly db: Queryable;
  readonly log: Log;
  readonly publisher: Publisher;
  readonly poison: string;
  readonly announcer: Announcer;
  readonly endpoints: EndpointCache;
  readonly settler: Settler;
  readonly holder: string;
  readonly maxPerEndpoint: number;
  /** How many wake-ups may wait for a place at slow endpoints, in all. */
  readonly maxWaiting: number;
  /** Ends what waits for its turn, while calls in flight go on: those wake-ups are left to the next worker. */
  readonly stopping: AbortSignal;
  readonly tellDelivered: TellDelivered;
  /** Told when an endpoint was disabled by its own answer (410), to hold what waits for it. */
  readonly onEndpointDisabled: (endpointId: string) => void;
  readonly meter?: DeliveryMeter;
  /** Undefined: none are made. */
  readonly traces?: Traces | undefined;
}

/** What is due sooner waits here; the ladder's shortest tier is a second. */
const LOCAL_WAIT_MS = 1_000;
/** How long a delivery rests that met a fault of ours. */
const FAULT_DELAY_MS = 30_000;

export function createDeliverer(options: DelivererOptions): Deliverer {
  const { db, log, announcer, settler, stopping, meter, traces, tellDelivered } = options;
  const slots = createSlots(options.maxWaiting);
  /** Attempts that are under way, or whose outcome could not be written and whose claims have not expired, by delivery. */
  const inHand = new Map<string, number>();
  const claims = createClaimer(options, { inHand, taken: slots.taken, onClaimed });
  stopping.addEventListener('abort', () => slots.wakeAll(), { once: true });
  options.signal.addEventListener('abort', () => slots.beginAll(), { once: true });

  function onClaimed({ deliveryId, endpointId, attempt: number }: Claim): void {
    slots.take(endpointId);
    inHand.set(deliveryId, number);
  }

  async function follow(
    wakeUp: WakeUp,
    { traceParent, redelivered }: Traced & { readonly redelivered: boolean },
  ): Promise<void> {
    let current = wakeUp;
    let turnAt: string | undefined;
    for (;;) {
      if (stopping.aborted) throw new Error('the worker stops');
      const { verdict, askedAtMs } = await ask(current, turnAt);
      const again = turnAt !== undefined;
      turnAt = undefined;
      meter?.verdict(verdict.verdict);
      switch (verdict.verdict) {
        case 'claimed':
          return attempt(inTrace({ claim: verdict.claim, askedAtMs }));
        case 'wait':
          // Moved far ahead: the feeder has not come that far, and makes a wake-up when it does.
          if (!verdict.isClaimed && verdict.remainingMs > announcer.reachMs) return;
          current = { ...wakeUp, attempt: verdict.attempt };
          if (verdict.remainingMs >= LOCAL_WAIT_MS)
            return sendOn({ ...current, traceParent }, verdict.remainingMs);
          // One millisecond more than is left, or the timer fires within the same one and asks for nothing.
          await pause(verdict.remainingMs + 1, stopping);
          break;
        case 'crowded': {
          if (!(await slots.whenFree(verdict.endpointId, { ...verdict, again }))) {
            const backlogMs = slots.backlogMs(verdict.endpointId);
            return sendOn(
              { ...current, traceParent },
              awayMs(verdict, { timeoutMs: options.timeoutMs, backlogMs }),
            );
          }
          turnAt = verdict.endpointId;
          break;
        }
        case 'lapsed':
          await settle(await lapseOf(wakeUp.deliveryId, verdict));
          current = { ...wakeUp, attempt: verdict.attempt + 1 };
          break;
        case 'missed':
          await move('miss', wakeUp.deliveryId, 'no call can end before the deadline');
          return;
        case 'unreachable':
          await move('hold', wakeUp.deliveryId, 'the endpoint is paused or disabled');
          return;
        case 'ended':
          // Redelivered: whoever had it may have died before telling.
          if (redelivered && verdict.state === 'delivered') await tellDelivered(wakeUp);
          return;
        case 'nothing':
          return;
      }
    }
  }

  /** Asks for a claim. When nothing comes of the turn it had for a place at an endpoint, the next one there has its turn. */
  async function ask(wakeUp: WakeUp, turnAt: string | undefined): Promise<Asked> {
    let isTaken = false;
    try {
      const asked = await claims.ask(wakeUp);
      isTaken = asked.verdict.verdict === 'claimed' || asked.verdict.verdict === 'crowded';
      return asked;
    } finally {
      if (turnAt !== undefined && !isTaken) slots.passOn(turnAt);
    }
  }

  /** Back to the ladder: confirmed there before it is acknowledged here. */
  function sendOn(wakeUp: WakeUp & Traced, remainingMs: number): Promise<void> {
    meter?.hop();
    return announcer.announceNow({ contractRef: undefined, ...wakeUp, remainingMs });
  }

  async function move(transition: 'miss' | 'hold', deliveryId: string, reason: string): Promise<void> {
    const moved = await moveDeliveries(db, {
      move: transition,
      deliveryIds: [deliveryId],
      actor: options.holder,
      trail: JSON.stringify({ reason }),
      timeoutMs: options.timeoutMs,
    });
    if (transition === 'miss') meter?.missed(moved.length);
  }

  function inTrace(held: HeldClaim): HeldClaim {
    return traces === undefined ? held : { ...held, traced: traceAttempt(traces, held) };
  }

  async function attempt(held: HeldClaim): Promise<void> {
    const { claim, traced } = held;
    killPoint('claim.committed');
    let result: Result;
    try {
      await slots.begin(claim);
      result = await call(held);
    } finally {
      slots.free(claim.endpointId);
    }
    traced?.called(result);
    try {
      await settle(result, held);
      letGo(claim);
    } catch (error) {
      traced?.failed();
      // It was called: given up as lost it would be called again at once, without end. Its claim is left to expire.
      setTimeout(() => letGo(claim), options.leaseMs).unref();
      throw error;
    }
  }

  /** A later attempt of the same delivery may be in hand by now: it stays. */
  function letGo({ deliveryId, attempt: number }: Claim): void {
    if (inHand.get(deliveryId) === number) inHand.delete(deliveryId);
  }

  /** A fault of ours (a secret that cannot be opened, say) hurts this delivery alone and is not the endpoint's. */
  async function call(held: HeldClaim): Promise<Result> {
    const { claim } = held;
    let target: CallTarget | undefined;
    try {
      target = await options.endpoints.find(claim.endpointId, claim.endpointRevision);
      return await attemptDelivery(held, target, options);
    } catch (error) {
      log.fault('attempt_failed', error, { delivery_id: claim.deliveryId, endpoint_id: claim.endpointId });
      const of = { kind: claim.kind, hasDeadline: claim.marginMs !== undefined };
      return handBack(claim, {
        why: 'a fault of duepost',
        // With the endpoint at hand it may have gone as far as the call: such an attempt counts.
        sent: target !== undefined,
        delayMs: FAULT_DELAY_MS,
        isLast: isLastAttempt(claim.attempt - claim.attemptBase, target?.policy, of),
      });
    }
  }

  async function settle(result: Result, held?: HeldClaim): Promise<void> {
    const settled = await settler.settle(result);
    logAttempt(log, { result, settled, traceId: held?.traced?.traceId });
    meter?.settled(result, settled, held);
    held?.traced?.settled(result, settled);
    if (settled.state === 'due') {
      void announcer.announce([
        {
          ...settled,
          attempt: settled.latestAttempt + 1,
          remainingMs: settled.remainingMs ?? 0,
          traceParent: held?.claim.traceParent,
        },
      ]);
    }
    if (settled.disabledEndpoint) options.onEndpointDisabled(settled.endpointId);
    if (settled.state === 'delivered' && result.outcome === 'delivered') await tellDelivered(settled);
  }

  /** An endpoint that cannot be read must not keep its claims from ending. */
  async function lapseOf(
    deliveryId: string,
    verdict: Extract<Verdict, { verdict: 'lapsed' }>,
  ): Promise<Result> {
    const target = await options.endpoints
      .find(verdict.endpointId, verdict.endpointRevision)
      .catch(() => undefined);
    return lapse(deliveryId, verdict, target?.policy);
  }

  return {
    async handle(message) {
      const wakeUp = parseWakeUp(message.body);
      if ('problem' in wakeUp) {
        log.warn('wakeup_not_understood', { problem: wakeUp.problem });
        meter?.verdict('not_understood');
        return setAside(options.publisher, options.poison, { message, reason: wakeUp.problem });
      }
      return follow(wakeUp, {
        traceParent: readTraceParent(message.properties.headers['traceparent']),
        redelivered: message.redelivered,
      });
    },
    callsInFlight: slots.callsInFlight,
  };
}
