import type { Policy } from './policy.ts';
import { delayBySchedule } from './retry.ts';

/** So many failures in a row make an endpoint a failing one. */
export const FAILING_AFTER = 5;

/** Why a delivery may miss its deadline, the plainest reason first. */
export type RiskReason = 'held' | 'endpoint_failing' | 'margin';

/** A delivery with a deadline whose time has come or is near. */
export interface RiskInput {
  readonly state: 'due' | 'held';
  /** Deadline − now. */
  readonly marginMs: number;
  /** Now − due_at; negative: not due yet. */
  readonly overdueMs: number;
  /** Attempts that were made in this cycle. */
  readonly attempts: number;
  readonly policy: Policy;
  readonly timeoutMs: number;
  /** How long a delivery may be overdue without anything being wrong. */
  readonly graceMs: number;
  /** Of its endpoint, in a row. */
  readonly failures: number;
}

/** The shortest wait between two attempts. */
const FLOOR_MS = 1_000;

/**
 * Whether somebody should look before the deadline passes.
 *
 * A delivery whose first attempt is still to come in time is not at risk, however short its margin was from the start.
 */
export function findRisk(input: RiskInput): RiskReason | undefined {
  if (input.state === 'held') return input.overdueMs >= 0 ? 'held' : undefined;
  if (input.failures >= FAILING_AFTER) return 'endpoint_failing';
  const isLate = input.overdueMs > input.graceMs;
  if (input.attempts === 0 && !isLate) return undefined;
  return input.marginMs < neededMs(input) ? 'margin' : undefined;
}

/** What the remaining attempts take if each is as slow as it may be. */
function neededMs({ policy, attempts, timeoutMs }: RiskInput): number {
  let sumMs = attempts === 0 ? timeoutMs : 0;
  for (let attempt = Math.max(1, attempts); attempt < policy.maxAttempts; attempt += 1) {
    const waitMs = policy.kind === 'schedule' ? delayBySchedule(policy, attempt) : FLOOR_MS;
    sumMs += timeoutMs + (waitMs ?? 0);
  }
  return sumMs;
}
