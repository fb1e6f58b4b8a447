/** A claim that was won: what the attempt needs to know. */
export interface Claim {
  readonly deliveryId: string;
  readonly kind: 'reminder' | 'event';
  readonly attempt: number;
  /**
   * Attempts up to here do not count against the policy: those of earlier cycles, as many as people asked for, and as many
   * as were handed back without a call.
   */
  readonly attemptBase: number;
  readonly cycle: number;
  readonly revision: number;
  readonly endpointId: string;
  readonly endpointRevision: number;
  readonly idempotencyKey: string;
  readonly contractRef: string | undefined;
  /** The trace it belongs to; undefined: none was made when it was accepted. */
  readonly traceParent: string | undefined;
  readonly claimedAt: Date;
  /** How far the host's clock was ahead of the database's when the claim arrived, network time included. */
  readonly hostClockOffsetMs: number;
  /** How long after it fell due it was claimed, by the database's clock. */
  readonly overdueMs: number;
  /** Milliseconds until the deadline, by the database's clock; undefined: none. */
  readonly marginMs: number | undefined;
  /** How many calls its endpoint takes at once from one worker. */
  readonly limit: number;
  /** Near its deadline: it may have the places that are kept for such. */
  readonly urgent: boolean;
  readonly url: string;
  readonly body: Buffer;
  readonly bodySha256: Buffer;
}

export type Verdict =
  /** A claim was won. */
  | { readonly verdict: 'claimed'; readonly claim: Claim }
  /** Due later, or the claim of somebody else holds that long (`isClaimed`): ask again then, for this attempt. */
  | {
      readonly verdict: 'wait';
      readonly remainingMs: number;
      readonly attempt: number;
      readonly isClaimed: boolean;
    }
  /** Its endpoint has as many calls in flight as it may, here `limit`. */
  | {
      readonly verdict: 'crowded';
      readonly endpointId: string;
      readonly limit: number;
      /** It fails, and is only probed. */
      readonly probed: boolean;
      /** Near its deadline: it may have the places that are kept for such. */
      readonly urgent: boolean;
      /** Milliseconds until the deadline; undefined: none. */
      readonly marginMs: number | undefined;
    }
  /** The claim expired without a result, or the asking holder has one that it knows nothing of. */
  | {
      readonly verdict: 'lapsed';
      readonly attempt: number;
      /** Counted within the cycle. */
      readonly attemptOfCycle: number;
      readonly kind: 'reminder' | 'event';
      readonly endpointId: string;
      readonly endpointRevision: number;
      readonly hasDeadline: boolean;
      readonly ours: boolean;
    }
  /** The deadline leaves no time for a call. */
  | { readonly verdict: 'missed' }
  /** Its endpoint is paused or disabled. */
  | { readonly verdict: 'unreachable' }
  /** Ended. */
  | { readonly verdict: 'ended'; readonly state: string }
  /** Held, further along than the wake-up says, or not there. */
  | { readonly verdict: 'nothing' };
