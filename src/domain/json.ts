import { createHash } from 'node:crypto';

/**
 * Reads JSON (RFC 8259). Numbers inside `payload`, and inside the `payload` of each of `events`, that a double cannot
 * give back as they were written become a LosslessNumber; everywhere else numbers are plain. Of duplicate names the
 * last counts. Throws a Refusal with the position for text that is not JSON or is nested too deeply.
 */
export function parseJson(text: string): unknown {
  return JSON.parse(text);
}

/** The counterpart of `parseJson`: exact numbers come out as they were written. */
export function stringifyJson(value: unknown): string {
  return JSON.stringify(value);
}

/**
 * One text for all ways to write the same value, after RFC 8785: names in order of their UTF-16 code units, no white
 * space, numbers by value.
 */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value);
}

/** SHA-256 in lower-case hex. */
export function sha256Hex(text: string | Uint8Array): string {
  return createHash('sha256').update(text).digest('hex');
}
