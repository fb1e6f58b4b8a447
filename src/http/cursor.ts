import { createHash } from 'node:crypto';
import { refuseField } from '../domain/refusal.ts';

/** Where a page ended: what stands in the cursor besides the list it belongs to. */
export type Position = readonly (string | number)[];

const FINGERPRINT_LENGTH = 8;

/**
 * The cursor of a position in a list. It names the row after which the next page begins, so rows that are added
 * meanwhile shift nothing; and it belongs to the list as it was filtered.
 *
 * @param list  the list's name and filter
 */
export function encodeCursor(list: unknown, position: Position): string {
  return Buffer.from(JSON.stringify([fingerprint(list), ...position])).toString('base64url');
}

/** The position in a cursor; undefined stays undefined. Throws a Refusal for one that is not of this list. */
export function decodeCursor(list: unknown, cursor: string | undefined): Position | undefined {
  if (cursor === undefined) return undefined;
  const [of, ...position] = read(cursor);
  if (of !== fingerprint(list)) throw refuseCursor();
  return position;
}

function read(cursor: string): (string | number)[] {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    if (Array.isArray(value) && value.every((v) => typeof v === 'string' || Number.isInteger(v)))
      return value;
  } catch {
    // Told below.
  }
  throw refuseCursor();
}

function refuseCursor() {
  return refuseField(
    '/cursor',
    'cursor is none of this list: take next_cursor of its last page, with the same filter',
  );
}

function fingerprint(list: unknown): string {
  return createHash('sha256').update(JSON.stringify(list)).digest('base64url').slice(0, FINGERPRINT_LENGTH);
}
