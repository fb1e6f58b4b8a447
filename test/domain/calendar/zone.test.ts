import { describe, expect, it } from 'vitest';

import { parseDay } from '../../../src/domain/calendar/dates.ts';
import {
  compareTzVersions,
  findZone,
  isRepeated,
  isTzAtLeast,
  localTime,
  startOfDay,
  type Zone,
} from '../../../src/domain/calendar/zone.ts';

function zone(name: string): Zone {
  const found = findZone(name);
  if (found === undefined) throw new Error(`${name} is unknown here`);
  return found;
}

function start(name: string, date: string): string {
  return startOfDay(zone(name), parseDay(date) ?? Number.NaN).toISOString();
}

describe('the start of a day', () => {
  it.each([
    ['Europe/Berlin', '2027-03-28', '2027-03-27T23:00:00.000Z', 'an ordinary midnight'],
    ['Asia/Kathmandu', '2027-03-28', '2027-03-27T18:15:00.000Z', 'a quarter of an hour'],
    ['Pacific/Kiritimati', '2027-01-01', '2026-12-31T10:00:00.000Z', 'the first zone'],
    ['Pacific/Niue', '2027-01-01', '2027-01-01T11:00:00.000Z', 'one of the last zones'],
    ['Africa/Cairo', '2027-04-30', '2027-04-29T22:00:00.000Z', 'a midnight that is skipped'],
    ['America/Havana', '2027-11-07', '2027-11-07T04:00:00.000Z', 'a midnight that comes twice'],
    ['America/Nuuk', '2027-10-31', '2027-10-31T02:00:00.000Z', 'a last hour of the eve that comes twice'],
    ['Pacific/Apia', '2011-12-30', '2011-12-30T10:00:00.000Z', 'a date that never was'],
  ])('in %s on %s is %s: %s', (name, date, expected) => {
    expect(start(name, date)).toBe(expected);
  });
});

describe('a zone', () => {
  it('is found by its name in any case and kept under the name that was given', () => {
    expect(zone('europe/berlin').name).toBe('Europe/Berlin');
    expect(zone('Asia/Kolkata').name).toBe('Asia/Kolkata');
    expect(zone('UTC').name).toBe('UTC');
  });

  it.each(['', 'Berlin', '+02:00', 'UTC+2', 'Europe/', 'local', 'system', 'Europe/Berlin\n'])(
    'is not %j',
    (name) => {
      expect(findZone(name)).toBeUndefined();
    },
  );

  it('tells which of two equal wall times is the first', () => {
    const london = zone('Europe/London');
    const first = new Date('2027-10-31T00:30:00Z');
    const second = new Date('2027-10-31T01:30:00Z');
    expect([localTime(london, first), localTime(london, second)]).toEqual([
      '2027-10-31T01:30:00+01:00',
      '2027-10-31T01:30:00+00:00',
    ]);
    expect([isRepeated(london, first), isRepeated(london, second)]).toEqual([true, false]);
  });

  it('writes offsets of either sign and of minutes', () => {
    const at = new Date('2027-01-01T12:00:00Z');
    expect(localTime(zone('America/St_Johns'), at)).toBe('2027-01-01T08:30:00-03:30');
    expect(localTime(zone('Asia/Kathmandu'), at)).toBe('2027-01-01T17:45:00+05:45');
  });
});

describe('tz data versions', () => {
  it('are in the order of their releases', () => {
    const versions = ['2026a', '2025c', '2024b', '2025za', '2025z', '2025b'];
    expect(versions.sort(compareTzVersions)).toEqual(['2024b', '2025b', '2025c', '2025z', '2025za', '2026a']);
    expect(compareTzVersions('2025c', '2025c')).toBe(0);
  });

  it('are not any text', () => {
    expect(() => compareTzVersions('2025c', 'unknown')).toThrow(RangeError);
  });

  it('are at least a minimum, or not, by that order and not by the alphabet', () => {
    expect(['2025zb', '2026a', '2025za'].map((v) => isTzAtLeast(v, '2025za'))).toEqual([true, true, true]);
    expect(['2025zz', '2025z', '2025', 'unknown', undefined].map((v) => isTzAtLeast(v, '2025zza'))).toEqual(
      Array(5).fill(false),
    );
    expect(isTzAtLeast('2025b', '2025za')).toBe(false);
    expect(isTzAtLeast('2025zc', '2025aaa')).toBe(false);
  });
});
