import { randomBytes } from 'node:crypto';
import { createId } from '../domain/ids.ts';

/** A new id of that kind, made from the host's clock and chance; ids sort by when they were made. */
export function newId(prefix: 'dlv' | 'rem' | 'evt' | 'ep' | 'key'): string {
  return createId(prefix, Date.now(), randomBytes(10));
}
