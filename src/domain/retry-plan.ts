import type { Policy } from './policy.ts';
import { decideNext } from './retry.ts';

/**
 * When the attempts of a delivery would start if each of them failed at once: milliseconds after the first one.
 *
 * @param of.marginMs  milliseconds from the first attempt to the deadline; undefined: none
 */
export function planAttempts(
  policy: Policy,
  of: { readonly marginMs: number | undefined; readonly timeoutMs: number },
): number[] {
  const starts = [0];
  for (let afterMs = 0, attempt = 1; ; attempt += 1) {
    const next = decideNext({
      policy,
      attempt,
      marginMs: of.marginMs === undefined ? undefined : of.marginMs - afterMs,
      timeoutMs: of.timeoutMs,
      random: 0,
    });
    if ('giveUp' in next) return starts;
    afterMs += next.delayMs;
    starts.push(afterMs);
    if (next.lastCall) return starts;
  }
}
