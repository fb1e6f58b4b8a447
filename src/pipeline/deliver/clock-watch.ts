import type { Log } from '../../runtime/log.ts';

/** Compares the host's clock with the database's, which decides; tells once when they part and once when they meet. */
export interface ClockWatch {
  /**
   * @param offsetMs  how far the host's clock was ahead of the database's when an answer had come
   * @param tookMs    how long the answer may have been under way
   */
  see(offsetMs: number, tookMs: number): void;
}

/** Receivers refuse signatures from too far away, and people compare logs: two seconds are noticed. */
const TOLERATED_MS = 2_000;

export function createClockWatch(log: Pick<Log, 'warn' | 'info'>): ClockWatch {
  let isApart = false;
  return {
    see(offsetMs, tookMs) {
      const aheadMs = offsetMs > TOLERATED_MS ? Math.max(0, offsetMs - tookMs) : offsetMs;
      const wasApart = isApart;
      isApart = Math.abs(aheadMs) > TOLERATED_MS;
      if (isApart === wasApart) return;
      const fields = { host_ahead_ms: Math.round(aheadMs) };
      if (isApart)
        log.warn('clock_skew', { ...fields, note: "the database's clock decides; set the host's" });
      else log.info('clock_skew_over', fields);
    },
  };
}
