import { FAILING_AFTER, findRisk, type RiskReason } from '../../domain/at-risk.ts';
import { parsePolicy, policyInUse } from '../../domain/policy.ts';
import type { Log } from '../../runtime/log.ts';
import type { Pool } from '../../store/pool.ts';
import {
  type Flagged,
  flagAtRisk,
  listRiskCandidates,
  type RiskCandidate,
} from '../../store/watch/at-risk.ts';
import { createWalk } from './walk.ts';

export interface RiskWatchOptions {
  readonly pool: Pool;
  readonly log: Log;
  readonly graceMs: number;
  readonly timeoutMs: number;
  readonly horizonMs: number;
  readonly signal: AbortSignal;
  /** Told of every delivery that was flagged. */
  readonly onFlagged?: (reason: RiskReason) => void;
}

/** Finds deliveries that may miss their deadline, while there is still time to do something about it. */
export interface RiskWatch {
  /** One bounded pass; the next one goes on from there, at once if it says `again`. */
  watch(): Promise<{ readonly flagged: number; readonly again: boolean }>;
}

const PAGE = 1_000;
const PAGES_PER_PASS = 10;
/** A line each for so many of a pass; the rest is counted. */
const MAX_LINES = 20;

export function createRiskWatch(options: RiskWatchOptions): RiskWatch {
  const { pool, log } = options;
  const walk = createWalk();

  // Several processes may be at it: a row is flagged by one of them.
  async function watch(): Promise<{ flagged: number; again: boolean }> {
    let flagged = 0;
    let again = true;
    for (let pages = 0; pages < PAGES_PER_PASS && again && !options.signal.aborted; pages += 1) {
      const page = await listRiskCandidates(pool, {
        after: walk.after(),
        horizonMs: options.horizonMs,
        failingAfter: FAILING_AFTER,
        limit: PAGE,
      });
      flagged += await flag(page.candidates, flagged);
      walk.take(page);
      again = page.full;
    }
    if (flagged > MAX_LINES) log.warn('deliveries_at_risk', { flagged, not_listed: flagged - MAX_LINES });
    return { flagged, again };
  }

  async function flag(candidates: readonly RiskCandidate[], before: number): Promise<number> {
    const reasons = new Map<string, { readonly reason: RiskReason; readonly trail: string }>();
    for (const candidate of candidates) {
      const reason = judge(candidate, options);
      if (reason !== undefined)
        reasons.set(candidate.deliveryId, { reason, trail: trailText(candidate, reason) });
    }
    if (reasons.size === 0) return 0;
    const flagged = await flagAtRisk(pool, {
      deliveries: [...reasons].map(([deliveryId, { trail }]) => ({ deliveryId, trail })),
      actor: 'reconciler',
    });
    const reasonOf = ({ deliveryId }: Flagged): RiskReason => reasons.get(deliveryId)?.reason ?? 'margin';
    for (const one of flagged.slice(0, Math.max(0, MAX_LINES - before))) {
      log.warn('delivery_at_risk', {
        delivery_id: one.deliveryId,
        contract_ref: one.contractRef,
        endpoint_id: one.endpointId,
        deadline_at: one.deadlineAt,
        reason: reasonOf(one),
      });
    }
    for (const one of flagged) options.onFlagged?.(reasonOf(one));
    return flagged.length;
  }

  return { watch };
}

function judge(
  candidate: RiskCandidate,
  options: Pick<RiskWatchOptions, 'timeoutMs' | 'graceMs'>,
): RiskReason | undefined {
  const own = candidate.policy === undefined ? undefined : parsePolicy(candidate.policy);
  return findRisk({
    ...candidate,
    policy: policyInUse(own, { kind: candidate.kind, hasDeadline: true }),
    timeoutMs: options.timeoutMs,
    graceMs: options.graceMs,
  });
}

function trailText(candidate: RiskCandidate, reason: RiskReason): string {
  return JSON.stringify({
    reason,
    margin_ms: Math.round(candidate.marginMs),
    attempts: candidate.attempts,
    endpoint_failures: candidate.failures,
  });
}
