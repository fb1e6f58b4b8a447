import type { Position } from '../../store/due.ts';

/** What a walk is to know of a page that was read. */
export interface Step {
  /** Its last row; undefined: it was empty. */
  readonly last: Position | undefined;
  /** Whether there may be more behind it. */
  readonly full: boolean;
  /** How long, in milliseconds, nothing is to be done about any of its rows, which are all held; 0: there is something. */
  readonly idleMs: number;
}

/** Walks along what has not ended, from the oldest due time on, round after round. */
export interface Walk {
  /** Where the next page begins; undefined: at the oldest. */
  after(): Position | undefined;
  take(step: Step): void;
}

/** What was passed over is looked at again after so long, since an endpoint may be resumed and rows may come in between. */
const LONGEST_REST_MS = 60_000;

/**
 * A week-end's worth of held deliveries stands in front of everything else that is overdue: whole pages of it that begin a
 * round are passed over by the next ones, for a minute or until the first of their deadlines.
 */
export function createWalk(): Walk {
  let after: Position | undefined;
  let held: { readonly to: Position; readonly untilMs: number } | undefined;
  let isInFront = true;
  return {
    after: () => after,
    take({ last, full, idleMs }) {
      const nowMs = performance.now();
      isInFront &&= full && idleMs > 0;
      if (isInFront && last !== undefined) {
        const untilMs = nowMs + Math.min(idleMs, LONGEST_REST_MS);
        held = { to: last, untilMs: Math.min(untilMs, held?.untilMs ?? untilMs) };
      }
      after = last;
      if (full) return;
      if (held !== undefined && held.untilMs <= nowMs) held = undefined;
      after = held?.to;
      isInFront = true;
    },
  };
}
