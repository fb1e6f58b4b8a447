/** Counts requests per key. */
export interface RateLimit {
  /** @returns undefined: go ahead; else the whole seconds to wait */
  take(keyId: string): number | undefined;
}

const MINUTE_MS = 60_000;
const MAX_REMEMBERED = 10_000;

/**
 * A bucket per key that holds a minute's worth and fills evenly.
 *
 * @param perMinute  0: no limit
 * @param nowMs  a monotonic clock
 */
export function createRateLimit(perMinute: number, nowMs: () => number = () => performance.now()): RateLimit {
  const buckets = new Map<string, { level: number; atMs: number }>();
  return {
    take(keyId) {
      if (perMinute === 0) return undefined;
      const now = nowMs();
      let bucket = buckets.get(keyId);
      if (bucket === undefined) {
        // Only keys in force get here; more of them than this are forgiven what they have used.
        if (buckets.size >= MAX_REMEMBERED) buckets.clear();
        bucket = { level: perMinute, atMs: now };
        buckets.set(keyId, bucket);
      }
      bucket.level = Math.min(perMinute, bucket.level + ((now - bucket.atMs) / MINUTE_MS) * perMinute);
      bucket.atMs = now;
      if (bucket.level >= 1) {
        bucket.level -= 1;
        return undefined;
      }
      return Math.max(1, Math.ceil((((1 - bucket.level) / perMinute) * MINUTE_MS) / 1000));
    },
  };
}
