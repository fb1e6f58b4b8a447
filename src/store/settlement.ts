import type { DeadReason, Outcome } from '../domain/outcome.ts';

/** What an attempt ended in, and what was decided about its delivery. */
export interface Settlement {
  readonly deliveryId: string;
  readonly attempt: number;
  /** The delivery's timing revision that the decision was taken under. */
  readonly revision: number;
  readonly decision: 'deliver' | 'retry' | 'give_up' | 'lapse';
  readonly outcome: Outcome;
  /** Whether it counts against the endpoint. */
  readonly endpointFailed: boolean;
  /** Whether the endpoint said that it is gone (410). */
  readonly gone: boolean;
  /** An unknown outcome ends a claim once it has expired; its own holder may give it back before. */
  readonly handedBack: boolean;
  readonly deadReason?: DeadReason;
  /** Milliseconds from now until the next attempt. */
  readonly delayMs?: number;
  /** How long ago, in milliseconds, the call started and ended; undefined: it never did. */
  readonly startedAgoMs?: number;
  readonly finishedAgoMs?: number;
  readonly durationMs?: number;
  readonly status?: number;
  readonly error?: string;
  readonly errorDetail?: string;
  readonly retryAfterSeconds?: number;
  readonly retryAfterClamped: boolean;
  readonly responseExcerpt?: string;
  /** Whether nothing was sent, because the endpoint is in shadow mode; undefined: it was. */
  readonly shadow?: boolean;
  /** The trail entry: JSON text, kept to the letter. */
  readonly trail: string;
}

export interface Settled {
  readonly deliveryId: string;
  readonly attempt: number;
  /** applied: as decided. late: the claim had lapsed before. repeat: this result was stored already. */
  readonly effect: 'applied' | 'late' | 'repeat';
  readonly state: string;
  /** The delivery's latest attempt, and how long until the next one; undefined: ended. */
  readonly latestAttempt: number;
  readonly remainingMs: number | undefined;
  readonly contractRef: string | undefined;
  readonly endpointId: string;
  readonly disabledEndpoint: boolean;
}
