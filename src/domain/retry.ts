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

/** When the next attempt of a delivery starts, or why there is none. Durations only: no clock is read. */
export function decideNext(input: RetryInput): NextAttempt | GiveUp {
  throw new Error('not written yet');
}

/**
 * How long to wait before the next attempt of a delivery with a deadline: `min(base, margin / divisor)`, and
 * `margin / divisor` once only the reserve is left. For the last attempt it is the whole margin: the last call.
 *
 * @param attempt   the attempt that just ended, counted from 1
 * @param marginMs  milliseconds left until the deadline
 * @returns milliseconds, or undefined when no further attempt can end before the deadline
 */
export function delayByMargin(policy: DeadlinePolicy, attempt: number, marginMs: number): number | undefined {
  throw new Error('not written yet');
}

/**
 * How long the list says to wait before the next attempt.
 *
 * @param attempt  the attempt that just ended, counted from 1
 * @returns milliseconds, or undefined when the attempts are used up
 */
export function delayBySchedule(policy: SchedulePolicy, attempt: number): number | undefined {
  throw new Error('not written yet');
}

/** Milliseconds between the moment a delivery falls due and its first attempt. */
export function firstDelayMs(policy: Policy): number {
  return policy.kind === 'schedule' ? Math.round((policy.retrySchedule[0] ?? 0) * 1000) : 0;
}
