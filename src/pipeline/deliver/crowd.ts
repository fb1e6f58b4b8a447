import type { Verdict } from '../../store/verdict.ts';

/** How long a wake-up of a crowded endpoint goes away: until the crowd has passed, or a failing one may be well again. */
const CROWDED_MS = { from: 1_000, to: 8_000 };
const FAILING_MS = { from: 10_000, to: 40_000 };

/** How long a crowded wake-up goes away, at random; never so long that its deadline passes meanwhile. */
export function awayMs(
  { failing, marginMs }: Extract<Verdict, { verdict: 'crowded' }>,
  timeoutMs: number,
): number {
  const { from, to } = failing ? FAILING_MS : CROWDED_MS;
  const plannedMs = from + Math.random() * (to - from);
  return marginMs === undefined
    ? plannedMs
    : Math.max(CROWDED_MS.from, Math.min(plannedMs, (marginMs - timeoutMs) / 2));
}
