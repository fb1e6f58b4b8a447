import { type State, TRANSITIONS } from '../../src/domain/state.ts';
import type { Move } from '../../src/store/moves.ts';

/** Hours stand for durations: what passes while a test runs is nothing beside them. */
export const HOUR_MS = 3_600_000;
export const LEASE_HOURS = 1;

/** What contract section 4 says of one delivery, as plain as it can be said. */
export interface ModelDelivery {
  state: State;
  attempt: number;
  cycle: number;
  /** Attempts that do not count against the policy. */
  uncounted: number;
  base: number;
  revision: number;
  /** In hours from now; undefined: ended. */
  dueIn: number | undefined;
  scheduledIn: number;
  deadlineIn: number | undefined;
  leaseIn: number | undefined;
  holder: string | undefined;
  deadReason: string | undefined;
  /** By number, from 1; `undefined` while it is open. */
  readonly attempts: { outcome: string | undefined; late: boolean }[];
  /** The state that each cycle ended in. */
  readonly records: string[];
  readonly trail: string[];
}

export interface Model {
  status: 'active' | 'paused';
  failures: number;
  readonly deliveries: ModelDelivery[];
}

export interface ModelResult {
  readonly attempt: number;
  readonly decision: 'deliver' | 'retry' | 'give_up' | 'lapse';
  readonly outcome: 'delivered' | 'retryable' | 'terminal' | 'unknown';
  readonly handedBack: boolean;
  readonly delayHours: number;
  readonly deadReason?: string;
  readonly revision: number;
}

export function isEnded(d: ModelDelivery): boolean {
  return d.dueIn === undefined;
}

function end(
  d: ModelDelivery,
  state: 'delivered' | 'dead_lettered' | 'cancelled',
  deadReason?: string,
): void {
  d.state = state;
  d.dueIn = undefined;
  d.leaseIn = undefined;
  d.deadReason = deadReason;
  d.records.push(state);
}

/** What is set to now comes a moment after what was set to now before. */
const NOW = 1e-6;

const isPast = (hours: number | undefined): boolean => hours !== undefined && hours <= 10 * NOW;

/** What a wake-up for an attempt finds. */
export function claim(
  model: Model,
  d: ModelDelivery,
  asked: { attempt: number; holder: string; knows: boolean },
): string {
  if (isEnded(d)) return 'ended';
  if (d.state === 'held' || d.attempt > asked.attempt) return 'nothing';
  if (d.state === 'in_flight') {
    // Its holder waits for its own outcome to be written, however long that takes.
    if (d.holder === asked.holder) return asked.knows ? 'wait' : 'lapsed';
    return isPast(d.leaseIn) ? 'lapsed' : 'wait';
  }
  if (d.attempt === asked.attempt) return 'nothing';
  if (!isPast(d.dueIn)) return 'wait';
  if (isPast(d.deadlineIn)) return 'missed';
  if (model.status !== 'active') return 'unreachable';
  d.state = 'in_flight';
  d.attempt += 1;
  d.leaseIn = LEASE_HOURS;
  d.holder = asked.holder;
  d.attempts.push({ outcome: undefined, late: false });
  return 'claimed';
}

/** What a result does; the effect as the store tells it. */
export function settle(model: Model, d: ModelDelivery, r: ModelResult): 'applied' | 'late' | 'repeat' {
  const attempt = d.attempts[r.attempt - 1];
  const holds = d.state === 'in_flight' && d.attempt === r.attempt;
  if (attempt === undefined) return 'repeat';
  if (r.outcome === 'unknown') {
    if (!holds || !(r.handedBack || isPast(d.leaseIn))) return 'repeat';
  } else if (attempt.outcome !== undefined && (attempt.outcome !== 'unknown' || attempt.late)) {
    return 'repeat';
  }
  attempt.outcome = r.outcome;
  attempt.late = !holds;
  if (r.outcome === 'delivered') model.failures = 0;
  else if (r.outcome !== 'unknown') model.failures += 1;
  if (!holds) {
    if (r.decision !== 'deliver' || isEnded(d)) {
      d.trail.push('late_result');
      return 'late';
    }
    d.trail.push('deliver_late');
    end(d, 'delivered');
    return 'late';
  }
  // A time that has moved since takes back what was given up for want of time, or of attempts that there are anew.
  const hasAttempts = r.deadReason === 'attempts_exhausted' && r.attempt <= d.base + d.uncounted;
  const isTakenBack =
    r.decision === 'give_up' &&
    (r.deadReason === 'deadline_passed' || hasAttempts) &&
    r.revision !== d.revision;
  const takenBack = hasAttempts && r.outcome === 'unknown' ? 'lapse' : 'retry';
  const decision = isTakenBack ? takenBack : r.decision;
  d.trail.push(decision);
  if (decision === 'deliver') end(d, 'delivered');
  else if (decision === 'give_up') end(d, 'dead_lettered', r.deadReason);
  else {
    d.state = model.status === 'active' ? 'due' : 'held';
    d.leaseIn = undefined;
    d.dueIn = Math.max(Math.min(r.delayHours, d.deadlineIn ?? Number.POSITIVE_INFINITY), d.scheduledIn, NOW);
    if (r.handedBack) d.uncounted += 1;
  }
  return 'applied';
}

/** A move that no attempt makes; whether it was made. */
export function move(d: ModelDelivery, by: Move): boolean {
  const { from, to } = TRANSITIONS[by];
  if (!(from as readonly State[]).includes(d.state)) return false;
  if (by === 'miss' && !isPast(d.deadlineIn)) return false;
  d.trail.push(by);
  switch (by) {
    case 'miss':
      end(d, 'dead_lettered', 'deadline_passed');
      break;
    case 'abandon':
      end(d, 'dead_lettered', 'endpoint_gone');
      break;
    case 'cancel':
      end(d, 'cancelled');
      break;
    case 'replay':
    case 'replay_held':
      d.cycle += 1;
      d.base = d.attempt;
      d.uncounted = 0;
      d.dueIn = Math.max(NOW, d.scheduledIn);
      d.deadReason = undefined;
      d.state = to;
      break;
    case 'hold':
    case 'release':
      d.state = to;
  }
  return true;
}

/** A person wants it now. */
export function hasten(d: ModelDelivery): boolean {
  if (d.state !== 'due' || isPast(d.dueIn)) return false;
  d.dueIn = NOW;
  d.uncounted += 1;
  d.trail.push('retry_now');
  return true;
}

export function reschedule(d: ModelDelivery, to: { dueIn: number; deadlineIn: number }): boolean {
  if (isEnded(d) || d.dueIn === undefined) return false;
  if (d.state !== 'in_flight') {
    const waits = d.dueIn > d.scheduledIn;
    d.dueIn = waits ? Math.max(to.dueIn, Math.min(d.dueIn, to.deadlineIn)) : to.dueIn;
  }
  d.scheduledIn = to.dueIn;
  d.deadlineIn = to.deadlineIn;
  if (to.dueIn > 0) d.uncounted = d.attempt - d.base;
  d.revision += 1;
  d.trail.push('reschedule');
  return true;
}

/** The model as the tables can tell it: to a tenth of an hour, and no holder of what nobody holds. */
export function shown(model: Model): Model {
  const round = (hours: number): number => Math.round(hours * 10) / 10 + 0;
  const maybe = (hours: number | undefined): number | undefined =>
    hours === undefined ? undefined : round(hours);
  return {
    ...model,
    deliveries: model.deliveries.map((d) => ({
      ...d,
      holder: d.state === 'in_flight' ? d.holder : undefined,
      dueIn: maybe(d.dueIn),
      scheduledIn: round(d.scheduledIn),
      deadlineIn: maybe(d.deadlineIn),
      leaseIn: maybe(d.leaseIn),
    })),
  };
}

export function advance(model: Model, hours: number): void {
  for (const d of model.deliveries) {
    d.scheduledIn -= hours;
    if (d.dueIn !== undefined) d.dueIn -= hours;
    if (d.deadlineIn !== undefined) d.deadlineIn -= hours;
    if (d.leaseIn !== undefined) d.leaseIn -= hours;
  }
}
