import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseRetryAfter } from '../../src/domain/retry-after.ts';

const now = new Date('1994-11-06T08:40:00Z');
const DAY_MS = 86_400_000;

describe('Retry-After', () => {
  it('is absent where there is no header', () => {
    expect(parseRetryAfter(undefined, now)).toBeUndefined();
  });

  it.each([
    ['0', 0],
    ['1', 1000],
    ['900', 900_000],
    [' 7 ', 7000],
    ['\t7', 7000],
    ['007', 7000],
    ['86400', DAY_MS],
    ['86401', DAY_MS],
    ['9999999999', DAY_MS],
  ])('of %j is that many seconds, at most a day', (value, expected) => {
    expect(parseRetryAfter(value, now)).toBe(expected);
  });

  it.each([
    'Sun, 06 Nov 1994 08:49:37 GMT',
    'Sunday, 06-Nov-94 08:49:37 GMT',
    'Sun Nov  6 08:49:37 1994',
    ' Sun, 06 Nov 1994 08:49:37 GMT ',
  ])('reads the date %j', (value) => {
    expect(parseRetryAfter(value, now)).toBe(577_000);
  });

  it('of a date that has passed asks for no wait', () => {
    expect(parseRetryAfter('Sun, 06 Nov 1994 08:39:59 GMT', now)).toBe(0);
    expect(parseRetryAfter('Thu, 01 Jan 0001 00:00:00 GMT', now)).toBe(0);
  });

  it('of a date far away is a day', () => {
    expect(parseRetryAfter('Fri, 06 Nov 9994 08:49:37 GMT', now)).toBe(DAY_MS);
  });

  it('takes a year of two digits for the near one', () => {
    const turn = new Date('2099-12-31T23:59:50Z');
    expect(parseRetryAfter('Friday, 01-Jan-00 00:00:00 GMT', turn)).toBe(10_000);
    // 1994, not 2094.
    expect(parseRetryAfter('Sunday, 06-Nov-94 08:49:37 GMT', new Date('2026-01-01T00:00:00Z'))).toBe(0);
  });

  it('accepts a leap second and a leap day', () => {
    expect(parseRetryAfter('Sat, 31 Dec 2016 23:59:60 GMT', new Date('2016-12-31T23:59:50Z'))).toBe(10_000);
    expect(parseRetryAfter('Thu, 29 Feb 2024 00:00:10 GMT', new Date('2024-02-29T00:00:00Z'))).toBe(10_000);
  });

  it.each([
    '-5',
    '-0',
    '+30',
    '1.5',
    '1e3',
    '0x10',
    '',
    ' ',
    '120, 120',
    '120,120',
    '120;x=1',
    '7 s',
    '10000000000000',
    '١٢٠',
    '7\n',
    '\u00a07',
    'soon',
    'Infinity',
    'NaN',
    '2027-01-01',
    '2027-01-01T00:00:00Z',
    'Sun, 06 Nov 1994 08:49:37',
    'Sun, 06 Nov 1994 08:49:37 UTC',
    'Sun, 06 Nov 1994 08:49:37 +0000',
    'Sun, 6 Nov 1994 08:49:37 GMT',
    'Sun, 06 Nov 94 08:49:37 GMT',
    'sun, 06 nov 1994 08:49:37 gmt',
    'Sun,  06 Nov 1994 08:49:37 GMT',
    'Sun, 31 Feb 1994 08:49:37 GMT',
    'Sun, 00 Nov 1994 08:49:37 GMT',
    'Sun, 29 Feb 1995 08:49:37 GMT',
    'Sun, 06 Nov 1994 24:00:00 GMT',
    'Sun, 06 Nov 1994 08:60:00 GMT',
    'Sun Nov 6 08:49:37 1994',
    'Sunday, 06-Nov-1994 08:49:37 GMT',
  ])('of %j is ignored as malformed', (value) => {
    expect(parseRetryAfter(value, now)).toBeUndefined();
  });

  it('agrees with the date Node writes, within a day of now', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 4_000_000_000 }),
        fc.integer({ min: 0, max: 86_400 }),
        (at, ahead) => {
          const text = new Date((at + ahead) * 1000).toUTCString();
          expect(parseRetryAfter(text, new Date(at * 1000))).toBe(ahead * 1000);
        },
      ),
    );
  });

  it('is a wait from nothing to a day, or absent, whatever is sent', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.integer().map(String), fc.double().map(String)), (value) => {
        const wait = parseRetryAfter(value, now);
        if (wait === undefined) return;
        expect(wait).toBeGreaterThanOrEqual(0);
        expect(wait).toBeLessThanOrEqual(DAY_MS);
      }),
    );
  });
});
