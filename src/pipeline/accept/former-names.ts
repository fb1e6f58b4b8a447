import { listFormerNames } from '../../store/operations.ts';
import type { Queryable } from '../../store/pool.ts';

/** A request under a key that is taken, and an endpoint that the first one went to. */
export interface Repeat {
  /** The endpoint as the request names it; undefined: it names none. */
  readonly reference: string | undefined;
  readonly endpointId: string | undefined;
}

/**
 * What an endpoint is called may change between a request and its repetition.
 *
 * @param isKnown  whether a reference means an endpoint now: then it means that one, whoever was called so before
 * @returns the id that a repeat's reference meant, where the endpoint was called so once
 */
export async function resolveFormerNames(
  db: Queryable,
  repeats: readonly Repeat[],
  isKnown: (reference: string) => boolean,
): Promise<(repeat: Repeat) => string | undefined> {
  const open = repeats.filter(({ reference }) => reference !== undefined && !isKnown(reference));
  const endpointIds = [...new Set(open.flatMap(({ endpointId }) => endpointId ?? []))];
  if (endpointIds.length === 0) return () => undefined;
  const names = await listFormerNames(db, endpointIds);
  return ({ reference, endpointId }) => {
    if (reference === undefined || endpointId === undefined || isKnown(reference)) return undefined;
    return names.get(endpointId)?.has(reference) ? endpointId : undefined;
  };
}
