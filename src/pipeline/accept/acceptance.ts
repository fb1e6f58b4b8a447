import { randomBytes } from 'node:crypto';
import { createId } from '../../domain/ids.ts';
import { type Refusal, refuseField } from '../../domain/refusal.ts';
import type { Traced, Traces } from '../../runtime/traces.ts';
import type { Queryable } from '../../store/pool.ts';
import { keepTraceParents } from '../../store/trace-parents.ts';
import type { Announcer } from '../announce.ts';

/** What both kinds of acceptance stand on. */
export interface AcceptorOptions {
  readonly db: Queryable;
  readonly announcer: Announcer;
  /** How long a call may take: nothing is accepted that could not be sent in time. */
  readonly timeoutMs: number;
  /** Undefined: none are made. */
  readonly traces?: Traces | undefined;
}

/** The request, with the trace in which it is made. */
export function inCurrentTrace<T extends Traced>(request: T, traces: Traces | undefined): T {
  return traces === undefined ? request : { ...request, traceParent: traces.current() };
}

/**
 * Keeps, with the rows that a request made, the trace it was made in.
 *
 * @returns traces by delivery id
 */
export async function keepTraces(
  db: Queryable,
  made: Iterable<readonly [request: Traced, deliveryIds: readonly string[]]>,
): Promise<ReadonlyMap<string, string>> {
  const traceParents = new Map<string, string>();
  for (const [{ traceParent }, deliveryIds] of made) {
    if (traceParent !== undefined) for (const id of deliveryIds) traceParents.set(id, traceParent);
  }
  // The rows are committed by now, and a trace is not worth a failure.
  if (traceParents.size > 0) await keepTraceParents(db, traceParents).catch(() => undefined);
  return traceParents;
}

export const LANES = 2;
export const MAX_BATCH = 250;

/** What became of one request of a batch. */
export type Outcome<T> = { readonly result: T } | { readonly refusal: unknown };

/** A batch that met another in a circle is the same batch a moment later; nothing of it was written. */
export async function insertOnce<T>(insert: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await insert();
    } catch (error) {
      const code = (error as { code?: unknown }).code;
      if (tries >= 5 || (code !== '40P01' && code !== '40001')) throw error;
    }
  }
}

/** The refusal of other content under a key that is taken. */
export function keyReused(kind: 'event' | 'reminder'): Refusal {
  return refuseField(
    '/idempotency_key',
    `this idempotency key belongs to ${kind === 'event' ? 'an event' : 'a reminder'} with other content: repeat it with what it had then; only what is another thing gets a key of its own`,
    'idempotency_key_reused',
  );
}

export function newId(prefix: 'dlv' | 'rem' | 'evt' | 'ep' | 'key'): string {
  return createId(prefix, Date.now(), randomBytes(10));
}
