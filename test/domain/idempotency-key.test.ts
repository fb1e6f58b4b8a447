import { describe, expect, it } from 'vitest';
import { parseIdempotencyHeader, parseIdempotencyKey } from '../../src/domain/idempotency-key.ts';
import { Refusal } from '../../src/domain/refusal.ts';

describe('an idempotency key', () => {
  it.each(['ord_10241-created', 'a', 'A:b.c/d-e_f', '9007199254740993', 'x'.repeat(200)])(
    'of %j is taken as it is',
    (key) => {
      expect(parseIdempotencyKey(key, '/idempotency_key')).toBe(key);
      expect(parseIdempotencyHeader(key)).toBe(key);
      expect(parseIdempotencyHeader(` "${key}" `)).toBe(key);
    },
  );

  it.each(['', ' ', 'a b', 'ä', 'a\n', '\na', 'a\r\nX: y', 'a"b', 'a,b', 'a;b', 'a\u0000', 'x'.repeat(201)])(
    'of %j is refused',
    (key) => {
      expect(() => parseIdempotencyKey(key, '/idempotency_key')).toThrow(Refusal);
    },
  );

  it.each(['', '""', '"a', 'a"', '"a", "b"', 'a, b', '"a b"', '"a\\"b"', '"a";p=1', "'a'", '""a""'])(
    'header of %j is refused',
    (value) => {
      expect(() => parseIdempotencyHeader(value)).toThrow(Refusal);
    },
  );

  it('is refused by its place, with the remedy', () => {
    try {
      parseIdempotencyKey('a b', '/events/2/idempotency_key');
      expect.unreachable();
    } catch (error) {
      const refusal = error as Refusal;
      expect(refusal.faults[0]?.path).toBe('/events/2/idempotency_key');
      expect(refusal.message).toContain('1 to 200 characters');
    }
  });
});
