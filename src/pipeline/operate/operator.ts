/** Whoever asks for an operation, and why; both end in the audit trail. */
export interface Operator {
  readonly actor: string;
  readonly reason?: string;
}

/** @param reason  undefined: they did not say */
export function createOperator(actor: string, reason: string | undefined): Operator {
  return reason === undefined ? { actor } : { actor, reason };
}
