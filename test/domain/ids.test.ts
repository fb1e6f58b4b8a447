import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createId, type IdPrefix, idTime, isId } from '../../src/domain/ids.ts';

const prefixes: readonly IdPrefix[] = ['dlv', 'rem', 'evt', 'ep', 'key'];
const prefix = fc.constantFrom(...prefixes);
const instantMs = fc.integer({ min: 0, max: 2 ** 48 - 1 });
const random = fc.uint8Array({ minLength: 10, maxLength: 16 });

describe('ids', () => {
  it('are the TypeID form of a UUIDv7, as the TypeID specification writes one', () => {
    // 01890a5d-ac96-774b-bcce-b302099a8057
    const bytes = Buffer.from('774bbcceb302099a8057', 'hex');
    expect(createId('dlv', 0x01890a5dac96, bytes)).toBe('dlv_01h455vb4pex5vsknk084sn02q');
  });

  it('carry version 7 and the RFC variant whatever the random bytes are', () => {
    const ones = createId('ep', 2 ** 48 - 1, new Uint8Array(10).fill(0xff));
    const zeros = createId('ep', 0, new Uint8Array(10));
    expect(toHex(ones)).toBe('ffffffffffff7fffbfffffffffffffff');
    expect(toHex(zeros)).toBe('00000000000070008000000000000000');
  });

  it('say what they are and when they were made', () => {
    fc.assert(
      fc.property(prefix, instantMs, random, (kind, ms, bytes) => {
        const id = createId(kind, ms, bytes);
        expect(isId(kind, id)).toBe(true);
        expect(prefixes.filter((other) => isId(other, id))).toEqual([kind]);
        expect(idTime(id).getTime()).toBe(ms);
        expect(id).not.toContain('.');
      }),
    );
  });

  it('sort by the time they were made', () => {
    fc.assert(
      fc.property(instantMs, instantMs, random, random, (a, b, first, second) => {
        fc.pre(a !== b);
        expect(createId('dlv', a, first) < createId('dlv', b, second)).toBe(a < b);
      }),
    );
  });

  it('are not repeated within a millisecond', () => {
    const ids = new Set(Array.from({ length: 10_000 }, () => createId('rem', 1, randomBytes(10))));
    expect(ids.size).toBe(10_000);
  });

  it.each([
    'dlv_01h455vb4pex5vsknk084sn02', // one short
    'dlv_01h455vb4pex5vsknk084sn02q0',
    'dlv_81h455vb4pex5vsknk084sn02q', // more than 128 bits
    'dlv_01H455VB4PEX5VSKNK084SN02Q',
    'dlv_01h455vb4pex5vsknk084sn0iu', // letters Crockford left out
    'dlv-01h455vb4pex5vsknk084sn02q',
    'dlv_01h455vb4pex5vsknk084sn02q\n',
    'ep_01h455vb4pex5vsknk084sn02q',
    '01h455vb4pex5vsknk084sn02q',
    '',
  ])('do not take %j for a delivery id', (text) => {
    expect(isId('dlv', text)).toBe(false);
  });

  it('refuse too little randomness and impossible times', () => {
    expect(() => createId('dlv', 1, new Uint8Array(9))).toThrow(RangeError);
    for (const ms of [-1, 2 ** 48, Number.NaN]) {
      expect(() => createId('dlv', ms, new Uint8Array(10))).toThrow(RangeError);
    }
    expect(() => idTime('dlv_nonsense')).toThrow(RangeError);
  });
});

function toHex(id: string): string {
  const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';
  let value = 0n;
  for (const character of id.slice(id.indexOf('_') + 1))
    value = value * 32n + BigInt(alphabet.indexOf(character));
  return value.toString(16).padStart(32, '0');
}
