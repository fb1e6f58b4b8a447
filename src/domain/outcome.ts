import type { Policy } from './policy.ts';

/** What an attempt ended in; `unknown` when its claim lapsed before anyone said. */
export type Outcome = 'delivered' | 'retryable' | 'terminal' | 'unknown';
export type DeadReason = 'terminal_response' | 'attempts_exhausted' | 'deadline_passed' | 'endpoint_gone';

export interface Classification {
  readonly outcome: 'delivered' | 'retryable' | 'terminal';
  /** The receiver said that it is gone for good (410): its endpoint is to be disabled. */
  readonly gone: boolean;
}

const DELIVERED: Classification = { outcome: 'delivered', gone: false };
const RETRYABLE: Classification = { outcome: 'retryable', gone: false };
const TERMINAL: Classification = { outcome: 'terminal', gone: false };
const GONE: Classification = { outcome: 'terminal', gone: true };

/** Statuses that speak of the moment rather than of the request. */
const PASSING_STATUSES: readonly number[] = [408, 409, 425, 429];

/**
 * What an answer means under the policy in use.
 *
 * A status decides, even where the body broke off afterwards (`error` beside it). 2xx and 410 mean the same under
 * every policy; for the rest the policy's own lists come first.
 *
 * @param answer  without a status nothing was answered, which says nothing about whether it was processed
 */
export function classify(answer: { status?: number; error?: string }, policy: Policy): Classification {
  const { status } = answer;
  if (status === undefined) return RETRYABLE;
  if (status >= 200 && status < 300) return DELIVERED;
  if (status === 410) return GONE;
  if (policy.terminalStatuses.includes(status)) return TERMINAL;
  if (policy.retryableStatuses.includes(status)) return RETRYABLE;
  if (policy.kind === 'schedule' || PASSING_STATUSES.includes(status)) return RETRYABLE;
  // Outside 3xx and 4xx: server errors, and what RFC 9110 section 15 tells clients to treat as one.
  return status >= 300 && status < 500 ? TERMINAL : RETRYABLE;
}
