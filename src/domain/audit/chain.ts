import { createHash } from 'node:crypto';

/** One decision about a delivery, as the trail has it. */
export interface TrailEntry {
  /** From 1, without gaps. */
  readonly entry: number;
  /** RFC 3339, UTC, to the microsecond: `2026-10-05T08:00:00.000000Z`. */
  readonly at: string;
  readonly event: string;
  readonly actor: string;
  /** JSON text, to the letter. */
  readonly detail: string;
  readonly sha256: string;
}

/**
 * The hash of an entry: SHA-256 over the hash before it (nothing, for the first) and the entry's text.
 *
 * Equal to `trail_hash` of the database (migrations/0005_evidence.sql), which a test proves.
 */
export function hashEntry(before: Uint8Array, entry: Omit<TrailEntry, 'sha256'>): Buffer {
  return createHash('sha256')
    .update(before)
    .update(`${entry.entry}\n${entry.at}\n${entry.event}\n${entry.actor}\n${entry.detail}`)
    .digest();
}

export interface ChainFault {
  readonly entry: number;
  readonly what: string;
}

/** What is wrong with a chain: entries that are missing, out of order or changed. */
export function checkChain(entries: readonly TrailEntry[]): ChainFault[] {
  const faults: ChainFault[] = [];
  let before: Buffer = Buffer.alloc(0);
  let expected = 1;
  for (const entry of entries) {
    if (entry.entry !== expected) {
      const what =
        entry.entry > expected
          ? `entries ${expected} to ${entry.entry - 1} are missing`
          : 'it stands twice or out of order';
      faults.push({ entry: entry.entry, what });
    } else if (hashEntry(before, entry).toString('hex') !== entry.sha256) {
      faults.push({ entry: entry.entry, what: 'its hash does not fit its content and the entry before it' });
    }
    before = Buffer.from(entry.sha256, 'hex');
    expected = entry.entry + 1;
  }
  return faults;
}

/** An entry's detail; undefined: it is no JSON object. */
export function readDetail(entry: TrailEntry): Readonly<Record<string, unknown>> | undefined {
  return readDetailText(entry.detail);
}

/** A detail as it is stored; undefined: it is no JSON object. */
export function readDetailText(text: string): Readonly<Record<string, unknown>> | undefined {
  const value = readJson(text);
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
}

/** JSON, or undefined for text that is none: who checks evidence must expect anything. */
export function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Whether two texts mean the same millisecond. */
export function sameInstant(a: string, b: string): boolean {
  return Date.parse(a) === Date.parse(b);
}
