import { isId } from '../domain/ids.ts';
import { refuseField } from '../domain/refusal.ts';
import { findEndpoint } from '../store/endpoints.ts';
import type { Queryable } from '../store/pool.ts';

/** The id of an endpoint in a filter, where its name will do; an id is taken as it is, for the endpoint may be deleted. */
export async function findEndpointId(
  db: Queryable,
  reference: string | undefined,
  path: string,
): Promise<string | undefined> {
  if (reference === undefined || isId('ep', reference)) return reference;
  const endpoint = await findEndpoint(db, reference);
  if (endpoint === undefined) throw refuseField(path, `there is no endpoint ${reference}`, 'not_found');
  return endpoint.endpointId;
}
