import type { Meters } from '../../runtime/metrics.ts';
import type { Settled } from '../../store/settlement.ts';
import type { Verdict } from '../../store/verdict.ts';
import type { HeldClaim } from './attempt.ts';
import type { Result } from './settle.ts';

/** Told of what happens to wake-ups and attempts, to measure it; cheap enough for each of them. */
export interface DeliveryMeter {
  /** `held` is undefined where somebody else's claim was ended. */
  settled(result: Result, settled: Settled, held: HeldClaim | undefined): void;
  verdict(verdict: Verdict['verdict'] | 'not_understood'): void;
  /** A wake-up went back to the ladder. */
  hop(): void;
  readonly missed: MissMeter;
}

/** Told how many deliveries ended because their deadline left no time. */
export type MissMeter = (count: number) => void;

const NONE: readonly string[] = [];
const STATUS_CLASSES = ['none', '1xx', '2xx', '3xx', '4xx', '5xx'] as const;

export function createDeliveryMeter(meters: Meters): DeliveryMeter {
  const attempts = meters.counter('duepost_attempts_total');
  const lateResults = meters.counter('duepost_late_results_total');
  const ended = meters.counter('duepost_deliveries_ended_total');
  const missed = createMissMeter(meters);
  const verdicts = meters.counter('duepost_wakeups_total');
  const hops = meters.counter('duepost_wakeup_hops_total');
  const durations = meters.histogram('duepost_attempt_duration_seconds');
  const firstDelays = meters.histogram('duepost_first_attempt_delay_seconds');
  const lateness = meters.histogram('duepost_attempt_lateness_seconds');
  const margins = meters.histogram('duepost_delivery_margin_seconds');

  function measureTimes(result: Result, { claim, askedAtMs }: HeldClaim): void {
    if (result.startedAtMs === undefined) return;
    if (result.durationMs !== undefined) durations(result.durationMs / 1000);
    const waitedMs = result.startedAtMs - askedAtMs;
    const lateSeconds = (claim.overdueMs + waitedMs) / 1000;
    lateness(lateSeconds);
    if (claim.attempt === 1) firstDelays(lateSeconds);
    if (result.outcome === 'delivered' && claim.marginMs !== undefined)
      margins((claim.marginMs - waitedMs - (result.durationMs ?? 0)) / 1000);
  }

  return {
    settled(result, settled, held) {
      attempts([result.outcome, STATUS_CLASSES[Math.floor((result.status ?? 0) / 100)] ?? 'none']);
      if (held !== undefined) measureTimes(result, held);
      if (settled.effect !== 'applied') lateResults([settled.effect]);
      if (settled.effect === 'repeat') return;
      if (settled.state === 'delivered' && result.outcome === 'delivered') ended(['delivered', 'none']);
      if (settled.state === 'dead_lettered' && result.deadReason !== undefined) {
        if (result.deadReason === 'deadline_passed') missed(1);
        else ended(['dead_lettered', result.deadReason]);
      }
    },
    verdict(verdict) {
      verdicts([verdict]);
    },
    hop() {
      hops(NONE);
    },
    missed,
  };
}

export function createMissMeter(meters: Meters): MissMeter {
  const missed = meters.counter('duepost_deadlines_missed_total');
  const ended = meters.counter('duepost_deliveries_ended_total');
  return (count) => {
    missed(NONE, count);
    ended(['dead_lettered', 'deadline_passed'], count);
  };
}
