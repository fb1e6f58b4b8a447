import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Refusal } from '../../src/domain/refusal.ts';
import { judgeTarget, parseTarget, type TargetRules } from '../../src/domain/target.ts';

const PUBLIC: TargetRules = { allowHttp: false, isAllowedAddress: (address) => address === '93.184.216.34' };
const LOCAL: TargetRules = { allowHttp: true, isAllowedAddress: (address) => address.startsWith('127.') };

function refusal(url: string, rules: TargetRules): Refusal {
  try {
    parseTarget(url, rules);
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
  throw new Error(`${url} was taken`);
}

describe('the URL of an endpoint', () => {
  it.each([
    ['https://hooks.example.com/a?b=c', 'https://hooks.example.com/a?b=c'],
    ['HTTPS://Hooks.Example.COM:443', 'https://hooks.example.com/'],
    ['https://hooks.example.com:8443/a', 'https://hooks.example.com:8443/a'],
    ['https://bücher.example/ä', 'https://xn--bcher-kva.example/%C3%A4'],
    ['https://ⓗⓞⓞⓚⓢ.example/', 'https://hooks.example/'],
    ['https://hooks.example.com./', 'https://hooks.example.com./'],
    ['https://localhost.example.com/', 'https://localhost.example.com/'],
    ['https://93.184.216.34/', 'https://93.184.216.34/'],
    ['https://1572395042/', 'https://93.184.216.34/'],
  ])('takes %s as %s', (url, normalised) => {
    expect(parseTarget(url, PUBLIC).href).toBe(normalised);
  });

  it.each([
    ['http://hooks.example.com/', /plain http is not allowed/],
    ['ftp://hooks.example.com/', /must begin with https/],
    ['file:///etc/passwd', /must begin with https/],
    ['data:text/plain,x', /must begin with https/],
    ['javascript:alert(1)', /must begin with https/],
    ['hooks.example.com/a', /absolute URL/],
    ['/a', /absolute URL/],
    ['', /absolute URL/],
    ['https://', /absolute URL/],
    ['https://h.example:0/', /port 0/],
    ['https://h.example:22/', /port 22/],
    ['https://h.example:25/', /port 25/],
    ['https://h.example:6667/', /port 6667/],
    ['https://h.example:65536/', /absolute URL/],
    ['https://user@h.example/', /user name or password/],
    ['https://user:pass@h.example/', /user name or password/],
    ['https://h.example@127.0.0.1/', /user name or password/],
    ['https://h.example/#part', /fragment/],
    [' https://h.example/', /white space/],
    ['https://h.exa\tmple/', /white space/],
    ['https://h.example/\r\nX-Injected: 1', /white space/],
    [`https://h.example/${'a'.repeat(2_048)}`, /longer than 2048/],
  ])('refuses %j', (url, message) => {
    const error = refusal(url, PUBLIC);
    expect(error.code).toBe('url_not_allowed');
    expect(error.faults.map(({ path }) => path)).toEqual(['/url']);
    expect(error.message).toMatch(message);
  });

  it.each(
    words(`
      2130706433 0177.0.0.1 0x7f.1 127.1 127.0.0.1 0 ①②⑦.⓪.⓪.① %31%32%37.0.0.1 127.0.0.1. [::1]
      [::ffff:7f00:1] [0:0:0:0:0:0:0:1] 10.0.0.5 169.254.169.254 1.1.1.1 localhost LOCALHOST localhost.
      api.localhost api.localhost. ⓛocalhost
    `),
  )('judges the host %s by what it is', (host) => {
    const error = refusal(`https://${host}/hook`, PUBLIC);
    expect(error.code).toBe('url_not_allowed');
    expect(error.message).toMatch(/which is not a public address$/);
    expect(judgeTarget(`https://${host}/hook`, PUBLIC)).toMatchObject({ reason: 'address_not_allowed' });
  });

  it.each([
    'http://127.0.0.1:9000/hook',
    'http://localhost:9000/hook',
    'https://127.1/',
    'http://receiver:9000/',
  ])('takes %s where that is allowed', (url) => {
    expect(parseTarget(url, LOCAL)).toBeInstanceOf(URL);
  });

  it('tells no path and no query of what it refuses', () => {
    for (const url of [
      'http://h.example/SECRETPATH?t=SECRETQ',
      'https://10.0.0.1/SECRETPATH?t=SECRETQ',
      'https://u:SECRETP@h.example/SECRETPATH',
      'https://h.example/SECRETPATH#SECRETF',
      'https://h.example:25/SECRETPATH',
    ]) {
      const { message, faults } = refusal(url, PUBLIC);
      expect(message + JSON.stringify(faults)).not.toMatch(/SECRET/);
    }
  });

  it('takes no spelling of a closed address', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 0xffffffff }), fc.constantFrom(8, 10, 16), (value, base) => {
        const prefix = { 8: '0', 10: '', 16: '0x' }[base] ?? '';
        const octets = [24, 16, 8, 0].map((shift) => (value >>> shift) & 255);
        const spelled = [
          octets.map((octet) => prefix + octet.toString(base)).join('.'),
          prefix + value.toString(base),
        ];
        const judged: string[] = [];
        const rules = { allowHttp: false, isAllowedAddress: (address: string) => judged.push(address) < 0 };
        for (const host of spelled) expect(judgeTarget(`https://${host}/`, rules)).not.toBeInstanceOf(URL);
        expect(judged).toEqual([octets.join('.'), octets.join('.')]);
      }),
    );
  });

  it('throws nothing but refusals, whatever it is given', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.webUrl()), (url) => {
        const target = judgeTarget(url, PUBLIC);
        expect(target instanceof URL ? target.protocol : target.message).toBeTruthy();
      }),
    );
  });
});

function words(text: string): string[] {
  return text.trim().split(/\s+/);
}
