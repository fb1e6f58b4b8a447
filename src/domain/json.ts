import { createHash } from 'node:crypto';
import { compareNumber, isLosslessNumber, LosslessNumber, parse, stringify } from 'lossless-json';
import { Refusal } from './refusal.ts';

/** Deep enough for any payload, and far from the end of the stack for whatever walks the value later. */
const MAX_DEPTH = 200;

const QUOTE = 0x22;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const NUMBER = /[-+.0-9eE]+/y;

/** What a JSON object is read as. */
export type Members = Record<string, unknown>;

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Reads the JSON of a body; a Refusal also for bytes that are not UTF-8. See parseJson. */
export function parseJsonBody(body: Buffer): unknown {
  let text: string;
  try {
    text = UTF8.decode(body);
  } catch {
    throw new Refusal('invalid_request', 'the body is not UTF-8');
  }
  return parseJson(text);
}

/**
 * Reads JSON (RFC 8259). Numbers inside `payload`, and inside the `payload` of each of `events`, that a double does not
 * give back as they were written become a LosslessNumber; everywhere else numbers are plain. Of duplicate names the
 * last counts. Throws a Refusal with the position for text that is not JSON, or is nested more than 200 levels deep.
 */
export function parseJson(text: string): unknown {
  const inexact = scan(text);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw notJson(text);
  }
  if (inexact && isMembers(value)) restorePayloads(value, parseExactly(text) as Members);
  return value;
}

/** The counterpart of `parseJson`: exact numbers come out as they were written. */
export function stringifyJson(value: unknown): string {
  const text = holdsExactNumber(value) ? stringify(value) : JSON.stringify(value);
  if (text === undefined) throw new TypeError('the value has no JSON form');
  return text;
}

/**
 * One text for all ways to write the same value, after RFC 8785: names in order of their UTF-16 code units, no white
 * space, numbers by value. A number no double is equal to keeps the digits it was written with.
 */
export function canonicalJson(value: unknown): string {
  if (isLosslessNumber(value)) return canonicalNumber(value.value);
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item ?? null)).join(',')}]`;
  if (!isMembers(value) || typeof value['toJSON'] === 'function') return stringifyJson(value);
  const members = Object.keys(value)
    .sort()
    .filter((name) => value[name] !== undefined)
    .map((name) => `${JSON.stringify(name)}:${canonicalJson(value[name])}`);
  return `{${members.join(',')}}`;
}

/** SHA-256 in lower-case hex. */
export function sha256Hex(text: string | Uint8Array): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Refuses what is nested too deeply, and says whether any number would not survive a double. */
function scan(text: string): boolean {
  let depth = 0;
  let inexact = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      depth++;
      if (depth > MAX_DEPTH) throw invalid(`nested more than ${MAX_DEPTH} levels deep`, text, at);
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) depth--;
    else if (code === MINUS || (code >= ZERO && code <= NINE)) {
      const end = endOfNumber(text, at);
      inexact ||= !isPlain(text.slice(at, end));
      at = end - 1;
    }
  }
  return inexact;
}

/** Where the string that opens at `start` closes, or the end of the text. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end !== -1) {
    let before = end - 1;
    while (text.charCodeAt(before) === BACKSLASH) before--;
    if ((end - before) % 2 === 1) return end;
    end = text.indexOf('"', end + 1);
  }
  return text.length;
}

function endOfNumber(text: string, start: number): number {
  NUMBER.lastIndex = start;
  NUMBER.test(text);
  return NUMBER.lastIndex;
}

function isPlain(number: string): boolean {
  return String(Number(number)) === number;
}

function parseExactly(text: string): unknown {
  return parse(text, undefined, {
    parseNumber: (number) => (isPlain(number) ? Number(number) : new LosslessNumber(number)),
    onDuplicateKey: ({ newValue }) => newValue,
  });
}

/** Plain numbers stay where our own members are, so that only payloads know of another kind. */
function restorePayloads(plain: Members, exact: Members): void {
  if (Object.hasOwn(plain, 'payload')) plain['payload'] = exact['payload'];
  if (!Object.hasOwn(plain, 'events') || !Array.isArray(plain['events'])) return;
  const events = exact['events'] as readonly Members[];
  plain['events'].forEach((event: unknown, index) => {
    if (isMembers(event) && Object.hasOwn(event, 'payload')) event['payload'] = events[index]?.['payload'];
  });
}

function notJson(text: string): Refusal {
  if (text.trim() === '') return new Refusal('invalid_request', 'the body is empty; send a JSON object');
  // V8 names a position for some errors only, and quotes the text for the others; the text is not ours to repeat.
  try {
    parseExactly(text);
  } catch (error) {
    const position = /at position (\d+)$/.exec(error instanceof Error ? error.message : '')?.[1];
    if (position !== undefined) return invalid('not valid JSON', text, Number(position));
  }
  return new Refusal('invalid_request', 'the body is not valid JSON');
}

function invalid(what: string, text: string, at: number): Refusal {
  const lines = text.slice(0, at).split('\n');
  const column = (lines.at(-1)?.length ?? 0) + 1;
  return new Refusal(
    'invalid_request',
    `the body is ${what}: position ${at}, line ${lines.length}, column ${column}`,
  );
}

function holdsExactNumber(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (isLosslessNumber(value)) return true;
  for (const item of Array.isArray(value) ? value : Object.values(value)) {
    if (holdsExactNumber(item)) return true;
  }
  return false;
}

function canonicalNumber(text: string): string {
  const double = Number(text);
  if (!Number.isFinite(double) || compareNumber(text, String(double)) !== 0) return text;
  return JSON.stringify(double);
}

/** Whether a value is a JSON object: neither null nor a list. */
export function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
