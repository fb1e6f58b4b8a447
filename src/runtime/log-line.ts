import { escapeUnprintable, hideSecrets } from './scrub.ts';

const MAX_DEPTH = 6;
const MAX_ITEMS = 100;
const MAX_TEXT = 8_192;

const SECRET_NAME = /secret|password|passwd|token|authorization|cookie|master_?key|private_?key/i;

/** What one line of the log tells. */
export interface Entry {
  readonly at: Date;
  readonly level: string;
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** One line of JSON: `at`, `level`, `event`, then the fields; a field of such a name gets `_` at its end. */
export function jsonLine({ at, level, event, fields }: Entry): string {
  const pairs: [string, unknown][] = [
    ['at', at.toISOString()],
    ['level', level],
    ['event', hideSecrets(event)],
  ];
  const taken = new Set(pairs.map(([name]) => name));
  for (const [name, value] of plainEntries(fields, 0, []))
    pairs.push([taken.has(name) ? `${name}_` : name, value]);
  // Joined by hand: as keys of an object, `__proto__` would vanish and numbers would come first.
  const members = pairs.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`);
  // In JSON, what is outside of ASCII's control characters stays as it is unless we escape it; inside a string, which
  // is the only place where such characters can be, \uXXXX means the same.
  return escapeUnprintable(`{${members.join(',')}}`);
}

/** One line for people: time, level, event, `name=value`. */
export function humanLine({ at, level, event, fields }: Entry): string {
  const words = [at.toISOString(), level.padEnd(5), hideSecrets(event)];
  for (const [name, value] of plainEntries(fields, 0, [])) words.push(`${name}=${humanValue(value)}`);
  return escapeUnprintable(words.join(' '));
}

function humanValue(value: unknown): string {
  return typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
}

/** A value as JSON can hold it: no secrets, no cycles, nothing endless; never throws. */
function plain(value: unknown, depth: number, above: readonly object[]): unknown {
  switch (typeof value) {
    case 'string':
      return cut(hideSecrets(value));
    case 'number':
      return Number.isFinite(value) ? value : String(value);
    case 'object':
      return value === null ? null : plainObject(value, depth, above);
    case 'boolean':
    case 'undefined':
      return value;
    default:
      // bigint, symbol, function
      return typeof value === 'function' ? '[function]' : String(value);
  }
}

function plainObject(value: object, depth: number, above: readonly object[]): unknown {
  if (above.includes(value)) return '[circular]';
  try {
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? '[invalid date]' : value.toISOString();
    if (value instanceof URL) return cut(hideSecrets(value.href));
    // Never the bytes: they are payloads or keys.
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `[${value.byteLength} bytes]`;
    if (depth >= MAX_DEPTH) return '[too deep]';
    const path = [...above, value];
    if (value instanceof Error) return Object.fromEntries(plainEntries(errorParts(value), depth + 1, path));
    if (value instanceof Map) return plain(Object.fromEntries(value), depth, path);
    const list = Array.isArray(value) || value instanceof Set ? [...value] : undefined;
    if (list === undefined) return Object.fromEntries(plainEntries(value, depth + 1, path));
    return list.slice(0, MAX_ITEMS).map((item) => plain(item, depth + 1, path) ?? null);
  } catch {
    return '[unreadable]';
  }
}

function plainEntries(from: object, depth: number, above: readonly object[]): [string, unknown][] {
  const entries: [string, unknown][] = [];
  for (const name of Object.keys(from).slice(0, MAX_ITEMS)) {
    const value = SECRET_NAME.test(name) ? '***' : plainMember(from, name, { depth, above });
    if (value !== undefined) entries.push([hideSecrets(name), value]);
  }
  return entries;
}

function plainMember(from: object, name: string, at: { depth: number; above: readonly object[] }): unknown {
  try {
    return plain((from as Record<string, unknown>)[name], at.depth, at.above);
  } catch {
    return '[unreadable]';
  }
}

/** The parts of an error worth a line; the rest of what libraries hang on errors may be requests, with their headers. */
function errorParts(error: Error): Record<string, unknown> {
  const { name, message, stack, cause } = error;
  const { code, errors } = error as { code?: unknown; errors?: unknown };
  return { name, message, code, stack, cause, errors };
}

function cut(text: string): string {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}… (${text.length} characters)` : text;
}
