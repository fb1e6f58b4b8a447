import { createPrivateKey } from 'node:crypto';
import { isIP } from 'node:net';
import convict from 'convict';
import type { Setting } from './config-settings.ts';

type Of<F extends Setting['format']> = Extract<Setting, { format: F }>;

/** Registers the formats of our settings with convict, which keeps one table of them for the whole process. */
export function addFormats(): void {
  add('whole', {
    // Convict's own numbers take "12abc" for 12.
    coerce: (text) => (/^-?\d{1,15}$/.test(text) ? Number(text) : text),
    check: (value, { min, max }) =>
      Number.isInteger(value) && (value as number) >= min && (value as number) <= max
        ? undefined
        : `must be a whole number from ${min} to ${max}`,
  });
  add('share', {
    coerce: (text) => (/^(0|1|0?\.\d{1,9}|1\.0+|0\.0+)$/.test(text) ? Number(text) : text),
    check: (value) =>
      typeof value === 'number' && value >= 0 && value <= 1 ? undefined : 'must be a number from 0 to 1',
  });
  add('choice', {
    check: (value, { among }) =>
      among.includes(value as string) ? undefined : `must be one of ${among.join(', ')}`,
  });
  add('flag', {
    // Convict's own booleans take everything but "false" for true.
    coerce: (text) => ({ true: true, false: false, 1: true, 0: false })[text] ?? text,
    check: (value) => (typeof value === 'boolean' ? undefined : 'must be true or false'),
  });
  add('text', {
    check: (value, { pattern, example }) =>
      typeof value === 'string' && pattern.test(value) ? undefined : `must look like ${example}`,
  });
  add('address', { check: (value, { schemes }) => checkAddress(value, schemes) });
  add('cidr-list', { coerce: splitList, check: checkList(isCidr, 'CIDRs such as 10.20.0.0/16') });
  add('key', { check: (value) => (isKey(value) ? undefined : 'must be base64 of 32 bytes') });
  add('key-list', { coerce: splitList, check: checkList(isKey, 'keys, each base64 of 32 bytes') });
  add('signing-key', {
    check: (value) => (isSigningKey(value) ? undefined : 'must be an Ed25519 private key in PEM (PKCS#8)'),
  });
}

function add<F extends Setting['format']>(
  name: F,
  format: {
    coerce?: (text: string) => unknown;
    check: (value: unknown, setting: Of<F>) => string | undefined;
  },
): void {
  convict.addFormat({
    name,
    ...(format.coerce && { coerce: format.coerce }),
    validate: (value: unknown, setting: unknown) => {
      const problem = format.check(value, setting as Of<F>);
      if (problem !== undefined) throw new Error(problem);
    },
  });
}

function splitList(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

function checkList(isGood: (value: unknown) => boolean, what: string) {
  return (value: unknown): string | undefined =>
    Array.isArray(value) && value.every(isGood) ? undefined : `must be a list of ${what}`;
}

function isCidr(value: unknown): boolean {
  const [address, bits, ...rest] = String(value).split('/');
  const family = isIP(address ?? '');
  if (typeof value !== 'string' || family === 0 || rest.length > 0 || !/^\d{1,3}$/.test(bits ?? ''))
    return false;
  return Number(bits) <= (family === 4 ? 32 : 128);
}

function isKey(value: unknown): boolean {
  return typeof value === 'string' && /^[A-Za-z0-9+/_-]{43}=?$/.test(value);
}

function isSigningKey(value: unknown): boolean {
  if (typeof value !== 'string' || !value.includes('-----BEGIN PRIVATE KEY-----')) return false;
  try {
    return createPrivateKey(value).asymmetricKeyType === 'ed25519';
  } catch {
    return false;
  }
}

/**
 * What is wrong with a URL, without a word of it: it may hold a password.
 *
 * A password that is not percent-encoded moves the borders of the other parts, so that a parser accepts it and
 * connects to another host; it is looked for before parsing.
 */
function checkAddress(value: unknown, schemes: readonly string[]): string | undefined {
  const wanted = `must be a URL that begins with ${schemes.map((scheme) => `${scheme}://`).join(' or ')}`;
  const [, scheme, rest] =
    (typeof value === 'string' && /^([a-z][a-z0-9+.-]*):\/\/(.*)$/is.exec(value)) || [];
  if (scheme === undefined || rest === undefined || !schemes.includes(scheme.toLowerCase())) return wanted;
  const userEnds = rest.lastIndexOf('@');
  if (userEnds >= 0 && !/^([A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})*$/.test(rest.slice(0, userEnds))) {
    return 'has a user name or password (all before the last @) that needs encoding: percent-encode it';
  }
  if (/%(?![0-9A-Fa-f]{2})/.test(rest)) return 'has a % that does not begin a code: percent-encode it as %25';
  if (!/^[\x21-\x7e]*$/.test(rest)) return 'has characters that need encoding: percent-encode them';
  if (scheme.toLowerCase().startsWith('amqp') && /^[^/?#]*\/[^?#]*[/#]/.test(rest)) {
    return 'has a virtual host that needs encoding: percent-encode it, / as %2F';
  }
  // PostgreSQL's may lack a host, which then is a socket.
  const isComplete = URL.canParse(value as string) && (schemes.includes('postgres') || /^[^/?#]/.test(rest));
  return isComplete ? undefined : wanted;
}
