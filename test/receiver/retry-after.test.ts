import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseRetryAfter } from '../../src/domain/retry-after.ts';

const vectors = JSON.parse(
  readFileSync(new URL('../../conformance/retry-after.json', import.meta.url), 'utf8'),
) as { now: string; cases: { name: string; header: string; seconds: number | null }[] };

describe('conformance/retry-after.json', () => {
  it.each(vectors.cases)('$name → $seconds s', ({ header, seconds }) => {
    const waitMs = parseRetryAfter(header, new Date(vectors.now));
    expect(waitMs).toBe(seconds === null ? undefined : seconds * 1000);
  });
});
