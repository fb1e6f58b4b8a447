import { type Policy, policyInUse } from '../../domain/policy.ts';
import type { Claim, Verdict } from '../../store/verdict.ts';
import type { Result } from './settle.ts';

/** Why a claim is given back by its holder. */
export interface HandBack {
  readonly why: string;
  /** Whether the endpoint may have seen the attempt; false if undefined. */
  readonly sent?: boolean;
  /** Until the next attempt; at once if undefined. */
  readonly delayMs?: number;
  /** Whether it was the last attempt that the policy gives. */
  readonly isLast?: boolean;
}

/** What every attempt has in common of which nobody knows what the endpoint made of it; the endpoint is not to blame. */
const UNKNOWN = {
  outcome: 'unknown',
  endpointFailed: false,
  gone: false,
  retryAfterClamped: false,
} as const;

/** The claim's holder gives it back: whether anything was processed is not known. */
export function handBack(claim: Claim, { why, sent = false, delayMs = 0, isLast = false }: HandBack): Result {
  return {
    ...UNKNOWN,
    ...whatFollows(isLast && sent, delayMs),
    deliveryId: claim.deliveryId,
    attempt: claim.attempt,
    revision: claim.revision,
    handedBack: true,
    error: sent ? 'aborted' : 'not_sent',
    errorDetail: why,
    trail: JSON.stringify({ attempt: claim.attempt, cycle: claim.cycle, sent, reason: why }),
  };
}

/** Ends the claim of somebody who never came back, or one of our own whose answer was lost and which nobody used. */
export function lapse(
  deliveryId: string,
  verdict: Extract<Verdict, { verdict: 'lapsed' }>,
  policy: Policy | undefined,
): Result {
  const { attempt, ours } = verdict;
  const reason = ours ? 'the answer to the claim was lost' : 'the claim expired without a result';
  // What was never called takes nothing from the budget's end.
  const isExhausted = !ours && isLastAttempt(verdict.attemptOfCycle, policy, verdict);
  return {
    ...UNKNOWN,
    ...whatFollows(isExhausted, 0),
    deliveryId,
    attempt,
    revision: 0,
    handedBack: ours,
    error: ours ? 'not_sent' : 'claim_expired',
    trail: JSON.stringify({ attempt, reason }),
  };
}

/** Whether the policy gives no attempt after this one, counted within the cycle. */
export function isLastAttempt(
  attemptOfCycle: number,
  policy: Policy | undefined,
  of: Parameters<typeof policyInUse>[1],
): boolean {
  return attemptOfCycle >= policyInUse(policy, of).maxAttempts;
}

function whatFollows(
  isExhausted: boolean,
  delayMs: number,
): Pick<Result, 'decision' | 'delayMs' | 'deadReason'> {
  return isExhausted
    ? { decision: 'give_up', deadReason: 'attempts_exhausted' }
    : { decision: 'lapse', delayMs };
}
