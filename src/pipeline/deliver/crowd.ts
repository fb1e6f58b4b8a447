import type { Verdict } from '../../store/verdict.ts';

/** How long a wake-up of a crowded endpoint goes away, at least and at most. */
const CROWDED_MS = { least: 1_000, most: 8_000 };
/** An endpoint that is probed may be well again after that long. */
const PROBED_MS = { from: 10_000, to: 40_000 };

/**
 * How long a crowded wake-up goes away: about as long as those before it take, so that many do not come back at once;
 * never so long that its deadline passes meanwhile.
 *
 * @param backlogMs  until those that wait have had their turn; undefined: not known
 */
export function awayMs(
  { probed, marginMs }: Extract<Verdict, { verdict: 'crowded' }>,
  { timeoutMs, backlogMs }: { readonly timeoutMs: number; readonly backlogMs: number | undefined },
): number {
  const plannedMs = probed
    ? PROBED_MS.from + Math.random() * (PROBED_MS.to - PROBED_MS.from)
    : Math.min(CROWDED_MS.most, CROWDED_MS.least + Math.random() * 2 * (backlogMs ?? 0));
  return marginMs === undefined
    ? plannedMs
    : Math.max(CROWDED_MS.least, Math.min(plannedMs, (marginMs - timeoutMs) / 2));
}
