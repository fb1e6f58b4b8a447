import fc from 'fast-check';
import { isLosslessNumber } from 'lossless-json';
import { describe, expect, it } from 'vitest';
import { canonicalJson, parseJson, sha256Hex, stringifyJson } from '../../src/domain/json.ts';
import { Refusal } from '../../src/domain/refusal.ts';

const EXACT = [
  '9007199254740993',
  '12.50',
  '1e400',
  '-0',
  '1E5',
  '0.1000000000000000000001',
  '1.0',
  '-1e-400',
];

describe('reading JSON', () => {
  it.each(EXACT)('keeps %s in a payload as it was written', (number) => {
    for (const text of [
      `{"payload":${number}}`,
      `{"payload":{"amount":[${number},{"x":${number}}]},"v":1}`,
      `{"events":[{"payload":${number}},{"type":"a","payload":[${number}]}]}`,
    ]) {
      expect(stringifyJson(parseJson(text))).toBe(text);
    }
  });

  it('leaves numbers plain that a double gives back', () => {
    const value = parseJson('{"payload":{"a":1,"b":1.5,"c":-7,"d":12.50,"e":9007199254740991}}');
    const { payload } = value as { payload: Record<string, unknown> };
    expect(payload).toMatchObject({ a: 1, b: 1.5, c: -7, e: 9007199254740991 });
    expect(isLosslessNumber(payload['d'])).toBe(true);
  });

  it('leaves numbers plain everywhere else, so that our own members are ordinary', () => {
    const text =
      '{"v":1.0,"n":9007199254740993,"payload":1.0,"events":[{"max":2.50,"payload":2.50},[1.0]],"data":{"payload":1.0}}';
    const value = parseJson(text) as Record<string, unknown>;
    expect(value).toMatchObject({ v: 1, n: 9007199254740992, data: { payload: 1 } });
    expect(isLosslessNumber(value['payload'])).toBe(true);
    const [event, list] = value['events'] as [Record<string, unknown>, unknown];
    expect(event['max']).toBe(2.5);
    expect(isLosslessNumber(event['payload'])).toBe(true);
    expect(list).toEqual([1]);
  });

  it('reads whatever JSON.parse reads, and alike', () => {
    fc.assert(
      fc.property(fc.json({ depthSize: 'medium' }), (text) => {
        expect(canonicalJson(parseJson(text))).toBe(canonicalJson(JSON.parse(text)));
      }),
    );
    for (const text of [
      'null',
      '1.50',
      '"x"',
      '[1.0]',
      ' {"a" : 1}\n',
      '"\\"1.0\\\\"',
      '{"events":1.0}',
      '{"events":[1.0,null]}',
    ]) {
      expect(parseJson(text)).toEqual(JSON.parse(text));
    }
  });

  it('gives a payload back as it came, white space aside', () => {
    const number = fc.tuple(fc.bigInt(), fc.nat({ max: 999_999 })).map(([whole, part]) => `${whole}.${part}`);
    const text = fc
      .tuple(number, fc.string(), number)
      .map(
        ([a, name, b]) =>
          `{"payload":{"a":${a},"b":[${JSON.stringify(name)},${b}]},"text":${JSON.stringify(name)}}`,
      );
    fc.assert(
      fc.property(text, (json) => {
        expect(stringifyJson(parseJson(json))).toBe(json);
      }),
    );
  });

  it('does not take digits in strings for numbers', () => {
    const text = '{"payload":{"at":"2027-03-31T00:00:00.000Z","id":"\\"12.50\\\\","big":"9007199254740993"}}';
    expect(parseJson(text)).toEqual(JSON.parse(text));
    expect(stringifyJson(parseJson(text))).toBe(text);
  });

  it('takes __proto__ for data', () => {
    const text =
      '{"payload":{"__proto__":{"admin":12.50},"constructor":{"prototype":1}},"__proto__":{"x":1}}';
    const value = parseJson(text) as Record<string, unknown>;
    expect(value['x']).toBeUndefined();
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(Object.keys(value)).toEqual(['payload', '__proto__']);
    expect(stringifyJson(value)).toBe(text);
    expect(canonicalJson(value)).toContain('"__proto__":{"admin":12.5}');
  });

  it('lets the last of duplicate names count, with exact numbers and without', () => {
    expect(stringifyJson(parseJson('{"payload":1,"payload":{"a":1,"a":2}}'))).toBe('{"payload":{"a":2}}');
    expect(stringifyJson(parseJson('{"payload":1,"payload":{"a":1.0,"a":2.0}}'))).toBe(
      '{"payload":{"a":2.0}}',
    );
  });

  it.each([
    ['{"a":}', 5],
    ['{"a":1', 6],
    ['{"a":1}}', 7],
    ["{'a':1}", 1],
    ['{"a":01}', 6],
    ['{"a":1,}', 7],
    ['[1,]', 3],
    ['{"a":"b\nc"}', 7],
    ['{"a":NaN}', 5],
    ['secret-token', 0],
  ])('refuses %j with the position, and does not repeat it', (text, position) => {
    const refusal = refusalOf(() => parseJson(text));
    expect(refusal.code).toBe('invalid_request');
    expect(refusal.message).toContain(`position ${position},`);
    expect(refusal.message).not.toContain('secret');
  });

  it('names line and column', () => {
    expect(refusalOf(() => parseJson('{\n  "a": x\n}')).message).toContain('line 2, column 8');
  });

  it('refuses a body that is empty', () => {
    expect(refusalOf(() => parseJson(' \n')).message).toContain('empty');
  });

  it('refuses nesting that would end the stack, and reads what is well within', () => {
    const nested = (depth: number) => `${'['.repeat(depth)}1.0${']'.repeat(depth)}`;
    expect(stringifyJson(parseJson(`{"payload":${nested(199)}}`))).toBe(`{"payload":${nested(199)}}`);
    for (const text of [
      `{"payload":${nested(200)}}`,
      nested(500_000),
      '['.repeat(500_000),
      '{"a":'.repeat(200_000),
    ]) {
      expect(refusalOf(() => parseJson(text)).message).toContain('200 levels');
    }
  });

  it('does not count brackets in strings', () => {
    for (const text of ['['.repeat(1000), `"${'['.repeat(1000)}`, `\\"${'{'.repeat(1000)}\\`]) {
      expect(parseJson(JSON.stringify([text]))).toEqual([text]);
    }
  });

  it.each([
    ['a megabyte of backslashes', () => `{"payload":"${'\\\\'.repeat(500_000)}"}`],
    ['a megabyte of quotes', () => `{"payload":"${'\\"'.repeat(500_000)}"}`],
    ['a number of a megabyte', () => `{"payload":${'9'.repeat(1_000_000)}}`],
    ['half a megabyte of numbers', () => `{"payload":[${'1.0,'.repeat(130_000)}1.0]}`],
  ])('ends for %s', (_what, make) => {
    const text = make();
    expect(stringifyJson(parseJson(text))).toBe(text);
  });
});

describe('canonical JSON', () => {
  it('is the one of RFC 8785', () => {
    const text =
      '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],' +
      '"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}';
    expect(canonicalJson(parseJson(text))).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    );
  });

  it('orders names by UTF-16 code units', () => {
    const value = { '\u20ac': 1, '\r': 2, '\ufb33': 3, '1': 4, '\u{1f600}': 5, '\u0080': 6, ö: 7 };
    expect(canonicalJson(value)).toBe('{"\\r":2,"1":4,"\u0080":6,"ö":7,"€":1,"\u{1f600}":5,"\ufb33":3}');
  });

  it('is the same for every order of names', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const turned = Object.fromEntries(Object.entries(value).reverse());
        expect(canonicalJson(turned)).toBe(canonicalJson(value));
        expect(canonicalJson(JSON.parse(canonicalJson(value)))).toBe(canonicalJson(value));
      }),
    );
  });

  it.each([
    ['12.50', '12.5'],
    ['1e2', '100'],
    ['1.0', '1'],
    ['-0', '0'],
    ['0.0', '0'],
    ['0e999999999', '0'],
    ['1e21', '1000000000000000000000'],
  ])('writes %s like %s', (one, other) => {
    const canonical = (number: string) => canonicalJson(parseJson(`{"payload":${number}}`));
    expect(canonical(one)).toBe(canonical(other));
  });

  it.each([
    ['9007199254740993', '9007199254740992'],
    ['1e400', '1e401'],
    ['0.1000000000000000000001', '0.1'],
    ['1e-400', '0'],
    ['12.50', '"12.50"'],
    ['1', 'true'],
  ])('tells %s from %s', (one, other) => {
    const canonical = (number: string) => canonicalJson(parseJson(`{"payload":${number}}`));
    expect(canonical(one)).not.toBe(canonical(other));
  });

  it('leaves undefined members out, and writes dates as JSON does', () => {
    const at = new Date('2027-03-31T00:00:00Z');
    expect(canonicalJson({ b: undefined, at, list: [undefined] })).toBe(
      '{"at":"2027-03-31T00:00:00.000Z","list":[null]}',
    );
  });
});

describe('writing JSON', () => {
  it('writes ordinary values as JSON.stringify does', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(stringifyJson(value)).toBe(JSON.stringify(value));
      }),
    );
  });

  it('refuses what has no JSON form', () => {
    expect(() => stringifyJson(undefined)).toThrow(TypeError);
  });
});

it('the digest is SHA-256 in hex, of text as UTF-8', () => {
  expect(sha256Hex('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  expect(sha256Hex('ü')).toBe(sha256Hex(Buffer.from([0xc3, 0xbc])));
});

function refusalOf(act: () => unknown): Refusal {
  try {
    act();
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}
