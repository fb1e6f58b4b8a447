import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createRateLimit } from '../../src/http/rate-limit.ts';

test('never lets more through than a full bucket and what flowed in since', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 600 }),
      fc.array(fc.integer({ min: 0, max: 30_000 }), { maxLength: 200 }),
      (perMinute, gaps) => {
        let nowMs = 0;
        const limit = createRateLimit(perMinute, () => nowMs);
        let through = 0;
        for (const gap of gaps) {
          nowMs += gap;
          if (limit.take('a') === undefined) through += 1;
        }
        expect(through).toBeLessThanOrEqual(perMinute + (nowMs / 60_000) * perMinute + 1e-6);
      },
    ),
  );
});

test('whoever waits as long as told gets through', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10_000 }), (perMinute) => {
      let nowMs = 0;
      const limit = createRateLimit(perMinute, () => nowMs);
      for (let n = 0; n < perMinute; n += 1) expect(limit.take('a')).toBeUndefined();
      const waitSeconds = limit.take('a');
      expect(waitSeconds).toBeGreaterThan(0);
      nowMs += (waitSeconds ?? 0) * 1000;
      expect(limit.take('a')).toBeUndefined();
    }),
    { numRuns: 20 },
  );
});

test('nothing is limited at 0', () => {
  const limit = createRateLimit(0);
  for (let n = 0; n < 1000; n += 1) expect(limit.take('a')).toBeUndefined();
});
