export type IdPrefix = 'dlv' | 'rem' | 'evt' | 'ep' | 'key';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const FORM = /^[0-7][0-9a-hjkmnp-tv-z]{25}$/;
const TIME_CHARACTERS = 10;
const TIME_LIMIT_MS = 2 ** 48;

/** Two characters at a time: half the steps of the hot path. */
const PAIRS = Array.from({ length: 1024 }, (_, n) => ALPHABET.charAt(n >> 5) + ALPHABET.charAt(n & 31));

/**
 * A new id: a UUIDv7 (RFC 9562) in TypeID form, so that ids sort by the time they were made.
 *
 * @param random  at least 10 bytes; throws RangeError when there are fewer, or when `nowMs` does not fit 48 bits
 */
export function createId(prefix: IdPrefix, nowMs: number, random: Uint8Array): string {
  if (random.length < 10) throw new RangeError('an id needs 10 random bytes');
  const byte = (n: number): number => random[n] as number;
  const low =
    encode40((byte(0) & 0x0f) | 0x70, byte(1), (byte(2) & 0x3f) | 0x80, (byte(3) << 8) | byte(4)) +
    encode40(byte(5), byte(6), byte(7), (byte(8) << 8) | byte(9));
  return `${prefix}_${encodeTime(nowMs)}${low}`;
}

/** Whether the text is an id of that kind, by its form alone. */
export function isId(prefix: IdPrefix, text: string): boolean {
  return text.startsWith(`${prefix}_`) && FORM.test(text.slice(prefix.length + 1));
}

/** The millisecond an id was made at; throws RangeError for text that is no id. */
export function idTime(id: string): Date {
  const encoded = id.slice(id.indexOf('_') + 1);
  if (!FORM.test(encoded)) throw new RangeError('not an id');
  let ms = 0;
  for (const character of encoded.slice(0, TIME_CHARACTERS)) ms = ms * 32 + ALPHABET.indexOf(character);
  return new Date(ms);
}

/** 48 bits after two zero bits are exactly ten characters. */
function encodeTime(ms: number): string {
  if (!(ms >= 0 && ms < TIME_LIMIT_MS)) throw new RangeError('the time of an id must fit 48 bits');
  const whole = Math.floor(ms);
  const high = Math.floor(whole / 2 ** 20);
  const low = whole % 2 ** 20;
  return pair(high >> 20) + pair(high >> 10) + pair(high) + pair(low >> 10) + pair(low);
}

/** Five bytes, the last two as one number, are exactly eight characters. */
function encode40(a: number, b: number, c: number, de: number): string {
  const high = (a << 12) | (b << 4) | (c >> 4);
  const low = ((c & 0x0f) << 16) | de;
  return pair(high >> 10) + pair(high) + pair(low >> 10) + pair(low);
}

function pair(bits: number): string {
  return PAIRS[bits & 1023] as string;
}
