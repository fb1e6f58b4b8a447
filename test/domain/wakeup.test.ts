import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeWakeUp, parseWakeUp, tierFor, type WakeUp } from '../../src/domain/wakeup.ts';

const DELIVERY = 'dlv_01h2xcejqtf2nbrexx3vqjhp41';

describe('the wake-up', () => {
  it('carries identifiers only, under the names of the contract', () => {
    const text = encodeWakeUp({ deliveryId: DELIVERY, contractRef: 'pol-7781', attempt: 2 }).toString();
    expect(text).toBe(`{"v":1,"delivery_id":"${DELIVERY}","contract_ref":"pol-7781","attempt":2}`);
  });

  it('says null where there is no contract', () => {
    const text = encodeWakeUp({ deliveryId: DELIVERY, attempt: 1 }).toString();
    expect(JSON.parse(text)).toEqual({ v: 1, delivery_id: DELIVERY, contract_ref: null, attempt: 1 });
  });

  it('comes back as it was sent', () => {
    const wakeUps = fc.record(
      {
        deliveryId: fc.stringMatching(/^dlv_[0-7][0-9a-hjkmnp-tv-z]{25}$/),
        contractRef: fc.string({ unit: 'grapheme', maxLength: 200 }),
        attempt: fc.integer({ min: 1, max: 1_000_000 }),
      },
      { requiredKeys: ['deliveryId', 'attempt'] },
    );
    fc.assert(
      fc.property(wakeUps, (wakeUp) => {
        expect(parseWakeUp(encodeWakeUp(wakeUp as WakeUp))).toEqual(wakeUp);
      }),
    );
  });

  it.each([
    ['nothing', ''],
    ['text', 'hello'],
    ['a list', '[]'],
    ['null', 'null'],
    ['a number', '1'],
    ['no version', `{"delivery_id":"${DELIVERY}","contract_ref":null,"attempt":1}`],
    ['another version', `{"v":2,"delivery_id":"${DELIVERY}","contract_ref":null,"attempt":1}`],
    ['the version as text', `{"v":"1","delivery_id":"${DELIVERY}","contract_ref":null,"attempt":1}`],
    ['no id', '{"v":1,"contract_ref":null,"attempt":1}'],
    [
      'the id of something else',
      '{"v":1,"delivery_id":"evt_01h2xcejqtf2nbrexx3vqjhp41","contract_ref":null,"attempt":1}',
    ],
    [
      'an id in capitals',
      `{"v":1,"delivery_id":"${DELIVERY.toUpperCase()}","contract_ref":null,"attempt":1}`,
    ],
    ['an id and a line break', `{"v":1,"delivery_id":"${DELIVERY}\\n","contract_ref":null,"attempt":1}`],
    ['a contract that is a number', `{"v":1,"delivery_id":"${DELIVERY}","contract_ref":7,"attempt":1}`],
    ['no word about a contract', `{"v":1,"delivery_id":"${DELIVERY}","attempt":1}`],
    ['no attempt', `{"v":1,"delivery_id":"${DELIVERY}","contract_ref":null}`],
    ['attempt 0', `{"v":1,"delivery_id":"${DELIVERY}","contract_ref":null,"attempt":0}`],
    ['attempt 1.5', `{"v":1,"delivery_id":"${DELIVERY}","contract_ref":null,"attempt":1.5}`],
    ['attempt 1000001', `{"v":1,"delivery_id":"${DELIVERY}","contract_ref":null,"attempt":1000001}`],
    ['the attempt as text', `{"v":1,"delivery_id":"${DELIVERY}","contract_ref":null,"attempt":"1"}`],
    [
      'more than 16 KiB',
      `{"v":1,"delivery_id":"${DELIVERY}","contract_ref":"${'x'.repeat(16_384)}","attempt":1}`,
    ],
  ])('is refused with a problem when it is %s', (_, text) => {
    expect(parseWakeUp(Buffer.from(text))).toEqual({ problem: expect.any(String) });
  });

  it('is refused when it is not UTF-8, or begins with a byte order mark', () => {
    const good = encodeWakeUp({ deliveryId: DELIVERY, contractRef: 'x', attempt: 1 });
    const latin = Buffer.from(good.toString().replace('"x"', '"\xe9"'), 'latin1');
    expect(parseWakeUp(latin)).toHaveProperty('problem');
    expect(parseWakeUp(Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), good]))).toHaveProperty('problem');
  });

  it('may say more than this version knows', () => {
    const text = `{"v":1,"delivery_id":"${DELIVERY}","contract_ref":null,"attempt":3,"later":true}`;
    expect(parseWakeUp(Buffer.from(text))).toEqual({ deliveryId: DELIVERY, attempt: 3 });
  });

  it('does not repeat what was sent when it is refused', () => {
    expect(JSON.stringify(parseWakeUp(Buffer.from('{"v":1,"delivery_id":"hunter2"}')))).not.toContain(
      'hunter2',
    );
  });
});

describe('the tier of a wake-up', () => {
  it.each([
    [Number.NEGATIVE_INFINITY, 'now'],
    [-1, 'now'],
    [0, 'now'],
    [0.4, 'now'],
    [1.5, 'now'],
    [127, 'now'],
    [128, 'now'],
    [255, 'now'],
    [256, 'now'],
    [999.999, 'now'],
    [1000, 't0001'],
    [1999, 't0001'],
    [2000, 't0002'],
    [127_999, 't0064'],
    [128_000, 't0128'],
    [255_999, 't0128'],
    [256_000, 't0256'],
    [2_047_999.999_999_9, 't1024'],
    [2_048_000, 't2048'],
    [2 ** 31, 't2048'],
    [2 ** 32 - 1, 't2048'],
    [2 ** 32, 't2048'],
    [49 * 86_400_000 + 17 * 3_600_000, 't2048'],
    [31_536_000_000, 't2048'],
    [Number.POSITIVE_INFINITY, 't2048'],
  ])('for %d ms is %s', (remainingMs, tier) => {
    expect(tierFor(remainingMs)).toBe(tier);
  });

  it('is an error for a time that is not a number', () => {
    expect(() => tierFor(Number.NaN)).toThrow(RangeError);
  });

  it('is never longer than what remains and, up to the longest, longer than half of it', () => {
    fc.assert(
      fc.property(fc.double({ min: 1000, max: 4_095_999, noNaN: true }), (remainingMs) => {
        const tierMs = Number(tierFor(remainingMs).slice(1)) * 1000;
        expect(tierMs).toBeLessThanOrEqual(remainingMs);
        expect(tierMs * 2).toBeGreaterThan(remainingMs);
      }),
    );
  });
});
