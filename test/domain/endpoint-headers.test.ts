import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseEndpointHeaders } from '../../src/domain/endpoint-headers.ts';
import { Refusal } from '../../src/domain/refusal.ts';

function refusal(headers: Record<string, string>): Refusal {
  try {
    parseEndpointHeaders(headers);
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
  throw new Error('the headers were taken');
}

describe("an endpoint's own headers", () => {
  it.each([
    {},
    { 'X-Team': 'payments' },
    { Authorization: 'Bearer abc.def-_~+/=' },
    { 'x-a': '', 'X-B': 'a b\tc' },
  ])('takes %j as they are', (headers) => {
    expect(parseEndpointHeaders(headers as Record<string, string>)).toEqual(headers);
  });

  it.each([
    ['X-Team', 'a\r\nX-Injected: 1'],
    ['X-Team', 'a\n'],
    ['X-Team', ' a'],
    ['X-Team', 'a\t'],
    ['X-Team', 'a—b'],
    ['X-Team', 'café'],
    ['X-Team', 'a\u0000b'],
    ['X-Team', 'a\u007f'],
    ['X-Team', '(not shown)'],
    ['X-Team', 'x'.repeat(70_000)],
    ['X-Team', 'x'.repeat(4_097)],
    ['Host', 'inward.example'],
    ['Content-Length', '0'],
    ['Transfer-Encoding', 'chunked'],
    ['Connection', 'close'],
    ['Expect', '100-continue'],
    ['Proxy-Authorization', 'Basic x'],
    ['Idempotency-Key', 'mine'],
    ['idempotency-KEY', 'mine'],
    ['webhook-signature', 'v1,x'],
    ['Webhook-Id', 'x'],
    ['webhook-anything', 'x'],
    ['X-Signature-256', 'x'],
    ['X-Delivery-Attempt', '1'],
    ['Content-Type', 'text/plain'],
    ['User-Agent', 'x'],
    ['traceparent', 'x'],
    ['Accept-Encoding', 'gzip'],
  ])('refuses %s: %j and names the field', (name, value) => {
    const error = refusal({ 'X-Fine': 'yes', [name]: value });
    expect(error.code).toBe('invalid_request');
    expect(error.faults.map(({ path }) => path)).toEqual([`/headers/${name}`]);
    expect(error.message).toMatch(/^header (value|is reserved)/);
  });

  it.each([
    ['X Team', '/headers/X Team'],
    ['', '/headers/'],
    ['X/Team~', '/headers/X~1Team~0'],
    ['X-Team\r\nX-Injected', '/headers/X-Team??X-Injected'],
    ['Ünicode', '/headers/?nicode'],
  ])('refuses the name %j', (name, path) => {
    expect(refusal({ [name]: 'x' }).faults.map((fault) => fault.path)).toEqual([path]);
  });

  it('refuses one name twice, whatever its case', () => {
    expect(refusal({ 'X-Team': 'a', 'x-team': 'b' }).message).toContain('given twice');
  });

  it('refuses too many, and too much in all', () => {
    const many = (count: number, value: string): Record<string, string> =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`X-${i}`, value]));
    expect(Object.keys(parseEndpointHeaders(many(32, 'x'))).length).toBe(32);
    expect(refusal(many(33, 'x')).message).toContain('at most 32');
    expect(refusal(many(3, 'x'.repeat(4_000))).message).toContain('exceed 8192');
  });

  it('lets nothing through that could end a header', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' })), (headers) => {
        try {
          const taken = parseEndpointHeaders(headers);
          for (const [name, value] of Object.entries(taken)) expect(`${name}${value}`).toMatch(/^[\t -~]*$/);
        } catch (error) {
          expect(error).toBeInstanceOf(Refusal);
        }
      }),
    );
  });
});
