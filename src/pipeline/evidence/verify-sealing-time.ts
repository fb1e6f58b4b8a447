import type { Finding, Findings } from '../../domain/audit/finding.ts';
import { lateBy, passedOver, sayLate, sayPassedOver } from '../../domain/audit/sealing-time.ts';
import type { SealTime } from '../../store/evidence/seals.ts';

/** What was sealed late: how much, and the first of it. */
export interface Late {
  readonly found: number;
  readonly first: readonly Finding[];
  add(where: string, what: string): void;
}

const MAX_LATE = 100;

/** Counts what was sealed late, which may be all there is, and keeps the first hundred. */
export function collectLate(): Late {
  const first: Finding[] = [];
  let found = 0;
  return {
    first,
    get found() {
      return found;
    },
    add(where, what) {
      found += 1;
      if (first.length < MAX_LATE) first.push({ where, what });
    },
  };
}

/**
 * Holds when something is said to have happened against when it was sealed: what the seal before should have held is a
 * finding, what was sealed later than is usual is told apart, as an outage does that too.
 */
export function checkSealingTime(
  where: string,
  of: {
    readonly saidAt: string;
    readonly time: SealTime | undefined;
    readonly findings: Findings;
    readonly late: Late;
  },
): void {
  const { saidAt, time, findings, late } = of;
  if (time === undefined) return;
  const { seal, before } = time;
  const skipped = passedOver(saidAt, before === undefined ? [] : [before]);
  if (skipped !== undefined) findings.add(where, sayPassedOver(saidAt, skipped));
  const ms = lateBy(saidAt, seal.sealed_at);
  if (ms !== undefined) late.add(where, sayLate(saidAt, { sealedAt: seal.sealed_at, ms }));
}
