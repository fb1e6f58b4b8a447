import type { DeadReason } from './outcome.ts';
import { type DeadlinePolicy, type Policy, policyInUse, type SchedulePolicy } from './policy.ts';

/** The last call starts this much before the last instant at which an attempt may start. */
export const LAST_CALL_MARGIN_MS = 5000;

const FLOOR_MS = 1000;

export interface NextAttempt {
  /** Whole milliseconds from now, never under 1000; the database's clock adds them up. */
  readonly delayMs: number;
  /** The attempt is due exactly at deadline − timeout − 5 s, and none follows it. */
  readonly lastCall: boolean;
  /** The receiver asked for more time than the deadline leaves. */
  readonly retryAfterClamped: boolean;
  /** Why then, in one phrase, for the evidence. */
  readonly reason: string;
}

export interface GiveUp {
  readonly giveUp: DeadReason;
  readonly reason: string;
}

export interface RetryInput {
  readonly policy: Policy;
  /** The attempt that just ended, counted within the cycle from 1. */
  readonly attempt: number;
  /** Deadline − now, by the database's clock; undefined when there is no deadline. */
  readonly marginMs?: number | undefined;
  readonly timeoutMs: number;
  /**
   * How long the attempt that just ended took, from its claim until now. With it an attempt that began at the last
   * call is recognised, and nothing follows it; undefined when unknown.
   */
  readonly tookMs?: number | undefined;
  /** What the receiver asked for; undefined when it did not. */
  readonly retryAfterMs?: number | undefined;
  /** 0 to 1. */
  readonly random: number;
}

const DEADLINE_PASSED: GiveUp = {
  giveUp: 'deadline_passed',
  reason: 'no further attempt can end before the deadline',
};

/** When the next attempt of a delivery starts, or why there is none. Durations only: no clock is read. */
export function decideNext(input: RetryInput): NextAttempt | GiveUp {
  const { attempt, marginMs, retryAfterMs = 0 } = input;
  // A deadline policy cannot measure a margin that is not there: the default schedule stands in.
  const policy =
    marginMs === undefined ? policyInUse(input.policy, { kind: 'event', hasDeadline: false }) : input.policy;
  if (attempt >= policy.maxAttempts) {
    return {
      giveUp: 'attempts_exhausted',
      reason: `attempt ${attempt} of ${policy.maxAttempts} was the last`,
    };
  }
  const step = planStep(policy, attempt, marginMs);
  if (step === undefined) return DEADLINE_PASSED;
  const wantedMs = Math.max(step.delayMs, retryAfterMs);
  const delayMs = Math.floor(wantedMs * (1 + policy.jitter * input.random));
  const reason = retryAfterMs > step.delayMs ? 'Retry-After' : step.reason;
  const free = { delayMs, lastCall: false, retryAfterClamped: false, reason };
  return marginMs === undefined ? free : boundByDeadline(free, { ...input, marginMs, retryAfterMs });
}

/**
 * How long to wait before the next attempt of a delivery with a deadline: `min(base, margin / divisor)`, and
 * `margin / divisor` once only the reserve is left. For the last attempt it is the whole margin, which the last call
 * then bounds.
 *
 * @param attempt   the attempt that just ended, counted from 1
 * @param marginMs  milliseconds left until the deadline
 * @returns milliseconds, never under 1000; undefined when no further attempt can end before the deadline
 */
export function delayByMargin(policy: DeadlinePolicy, attempt: number, marginMs: number): number | undefined {
  const left = policy.maxAttempts - attempt;
  if (left <= 0 || marginMs <= FLOOR_MS) return undefined;
  if (left === 1) return marginMs;
  const share = marginMs / policy.divisor;
  const waitMs = left <= policy.reserveAttempts ? share : Math.min(policy.baseSeconds * 1000, share);
  return Math.max(FLOOR_MS, Math.floor(waitMs));
}

/**
 * How long the list says to wait before the next attempt.
 *
 * @param attempt  the attempt that just ended, counted from 1
 * @returns milliseconds, never under 1000; undefined when the attempts are used up
 */
export function delayBySchedule(policy: SchedulePolicy, attempt: number): number | undefined {
  if (attempt >= policy.maxAttempts) return undefined;
  const { retrySchedule } = policy;
  const seconds = retrySchedule[Math.min(attempt, retrySchedule.length - 1)] ?? 0;
  return Math.max(FLOOR_MS, Math.round(seconds * 1000));
}

/** Milliseconds between the moment a delivery falls due and its first attempt. */
export function firstDelayMs(policy: Policy): number {
  return policy.kind === 'schedule' ? Math.round((policy.retrySchedule[0] ?? 0) * 1000) : 0;
}

function planStep(
  policy: Policy,
  attempt: number,
  marginMs = 0,
): { delayMs: number; reason: string } | undefined {
  const next = attempt + 1;
  if (policy.kind === 'schedule') {
    const delayMs = delayBySchedule(policy, attempt);
    return delayMs === undefined ? undefined : { delayMs, reason: `retry schedule, attempt ${next}` };
  }
  const delayMs = delayByMargin(policy, attempt, marginMs);
  if (delayMs === undefined) return undefined;
  const reserved = policy.maxAttempts - attempt <= policy.reserveAttempts;
  const rule = `margin / ${policy.divisor}`;
  const phrase = reserved ? `reserve, ${rule}` : `min(${policy.baseSeconds} s, ${rule})`;
  return { delayMs, reason: `${phrase}, attempt ${next}` };
}

/** The last call bounds every wait; where its instant is too close or past, one attempt may still follow the floor. */
function boundByDeadline(
  free: NextAttempt,
  input: RetryInput & { marginMs: number; retryAfterMs: number },
): NextAttempt | GiveUp {
  const { marginMs, timeoutMs, retryAfterMs, tookMs } = input;
  const latestMs = Math.floor(marginMs - timeoutMs);
  const lastCallMs = latestMs - LAST_CALL_MARGIN_MS;
  if (tookMs !== undefined && lastCallMs + tookMs <= 0) {
    return { giveUp: 'deadline_passed', reason: 'the last call was made' };
  }
  if (lastCallMs >= FLOOR_MS) {
    if (free.delayMs < lastCallMs) return free;
    const retryAfterClamped = retryAfterMs > lastCallMs;
    const reason = retryAfterClamped ? 'last call, Retry-After points past it' : 'last call';
    return { delayMs: lastCallMs, lastCall: true, retryAfterClamped, reason };
  }
  if (latestMs < FLOOR_MS) return DEADLINE_PASSED;
  return {
    delayMs: FLOOR_MS,
    lastCall: false,
    retryAfterClamped: retryAfterMs > FLOOR_MS,
    reason: 'last call, as soon as possible',
  };
}
