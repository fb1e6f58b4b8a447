import type pg from 'pg';
import type { TlsFacts } from '../domain/endpoint-tls.ts';
import type { Queryable } from './pool.ts';

export type EndpointStatus = 'active' | 'paused' | 'disabled';
export type EndpointMode = 'live' | 'shadow';

/** An endpoint as it is stored; its secrets, certificates and key are read apart. */
export interface Endpoint {
  readonly endpointId: string;
  readonly name: string;
  readonly url: string;
  readonly status: EndpointStatus;
  readonly statusReason: string | undefined;
  readonly mode: EndpointMode;
  readonly eventTypes: readonly string[];
  /** JSON as the contract has it; undefined: the default of what is sent. */
  readonly policy: unknown;
  readonly maxInFlight: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** What is shown of its own certificates; undefined: it has none. */
  readonly tls: TlsFacts | undefined;
  readonly revision: number;
  readonly consecutiveFailures: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** A row of `ENDPOINT_COLUMNS`. */
export interface EndpointRow extends pg.QueryResultRow {
  readonly endpoint_id: string;
  readonly name: string;
  readonly url: string;
  readonly status: EndpointStatus;
  readonly status_reason: string | null;
  readonly mode: EndpointMode;
  readonly event_types: string[];
  readonly policy: unknown;
  readonly max_in_flight: number | null;
  readonly headers: Record<string, string>;
  readonly tls: TlsFacts | null;
  readonly revision: number;
  readonly consecutive_failures: number;
  readonly created_at: Date;
  readonly updated_at: Date;
}

/** Of `endpoint e`. */
export const ENDPOINT_COLUMNS = `e.endpoint_id, e.name, e.url, e.status, e.status_reason, e.mode, e.event_types,
             e.policy, e.max_in_flight, e.headers, e.tls, e.revision, e.consecutive_failures, e.created_at, e.updated_at`;

export function toEndpoint(row: EndpointRow): Endpoint {
  return {
    endpointId: row.endpoint_id,
    name: row.name,
    url: row.url,
    status: row.status,
    statusReason: row.status_reason ?? undefined,
    mode: row.mode,
    eventTypes: row.event_types,
    policy: row.policy ?? undefined,
    maxInFlight: row.max_in_flight ?? undefined,
    headers: row.headers,
    tls: row.tls ?? undefined,
    revision: row.revision,
    consecutiveFailures: row.consecutive_failures,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

/** Endpoints by id or by name, those that were deleted left out; keyed by the reference as it was given. */
export async function findEndpoints(
  db: Queryable,
  references: readonly string[],
): Promise<{ now: Date; byReference: Map<string, Endpoint> }> {
  const result = await db.query<EndpointRow & { reference: string | null; now: Date }>({
    name: 'find_endpoints',
    text: `
      select now() as now, r.reference, ${ENDPOINT_COLUMNS}
        from (select now()) as clock
        left join unnest($1::text[]) as r (reference) on true
        left join endpoint e
          on (e.endpoint_id = r.reference or e.name = r.reference)
         and e.deleted_at is null`,
    values: [references],
  });
  const byReference = new Map<string, Endpoint>();
  for (const row of result.rows) {
    if (row.reference !== null && row.endpoint_id !== null) byReference.set(row.reference, toEndpoint(row));
  }
  return { now: result.rows[0]?.now as Date, byReference };
}

/** One endpoint by id or by name; undefined: there is none, or it was deleted. */
export async function findEndpoint(db: Queryable, reference: string): Promise<Endpoint | undefined> {
  return (await findEndpoints(db, [reference])).byReference.get(reference);
}

/** Endpoints that want events of any of the given types or patterns; by the database's clock at `now`. */
export async function listEndpointsForTypes(
  db: Queryable,
  patterns: readonly string[],
): Promise<{ now: Date; endpoints: Endpoint[] }> {
  const result = await db.query<EndpointRow & { now: Date }>({
    name: 'list_endpoints_for_types',
    text: `
      select now() as now, ${ENDPOINT_COLUMNS}
        from (select now()) as clock
        left join endpoint e
          on e.event_types && $1::text[]
         and e.deleted_at is null
       order by e.endpoint_id`,
    values: [patterns],
  });
  return {
    now: result.rows[0]?.now as Date,
    endpoints: result.rows.filter((row) => row.endpoint_id !== null).map(toEndpoint),
  };
}

/** Endpoints in the order they were made, from `after` on. */
export async function listEndpoints(
  db: Queryable,
  page: { readonly after: string; readonly limit: number },
): Promise<Endpoint[]> {
  const result = await db.query<EndpointRow>({
    name: 'list_endpoints',
    text: `
      select ${ENDPOINT_COLUMNS}
        from endpoint e
       where deleted_at is null
         and endpoint_id > $1
       order by endpoint_id
       limit $2`,
    values: [page.after, page.limit],
  });
  return result.rows.map(toEndpoint);
}

export interface NewEndpoint {
  readonly endpointId: string;
  readonly name: string;
  readonly url: string;
  readonly mode: EndpointMode;
  readonly eventTypes: readonly string[];
  readonly policy: unknown;
  readonly maxInFlight: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

/** Inserts an endpoint; undefined: its name is taken. */
export async function insertEndpoint(db: Queryable, endpoint: NewEndpoint): Promise<Endpoint | undefined> {
  const result = await db.query<EndpointRow>({
    name: 'insert_endpoint',
    text: `
      insert into endpoint as e (endpoint_id, name, url, mode, event_types, policy, max_in_flight, headers)
      values ($1, $2, $3, $4, $5, $6, $7, $8)
      on conflict (name) where deleted_at is null do nothing
      returning ${ENDPOINT_COLUMNS}`,
    values: [
      endpoint.endpointId,
      endpoint.name,
      endpoint.url,
      endpoint.mode,
      endpoint.eventTypes,
      endpoint.policy === undefined ? null : JSON.stringify(endpoint.policy),
      endpoint.maxInFlight ?? null,
      JSON.stringify(endpoint.headers),
    ],
  });
  return result.rows[0] && toEndpoint(result.rows[0]);
}

/** Locks an endpoint until the transaction ends, so that changes to it are made one after the other. */
export async function findEndpointForUpdate(db: Queryable, reference: string): Promise<Endpoint | undefined> {
  const result = await db.query<EndpointRow>({
    name: 'find_endpoint_for_update',
    text: `
      select ${ENDPOINT_COLUMNS}
        from endpoint e
       where (endpoint_id = $1 or name = $1)
         and deleted_at is null
         for no key update`,
    values: [reference],
  });
  return result.rows[0] && toEndpoint(result.rows[0]);
}

/** What of an endpoint may change. */
export type EndpointState = Omit<NewEndpoint, 'endpointId'> & {
  readonly status: EndpointStatus;
  readonly statusReason: string | undefined;
};

/** Writes an endpoint's changed state and moves its revision; the caller holds its lock. */
export async function updateEndpoint(
  db: Queryable,
  endpointId: string,
  to: EndpointState,
): Promise<Endpoint> {
  const result = await db.query<EndpointRow>({
    name: 'update_endpoint',
    text: `
      update endpoint e
         set name = $2,
             url = $3,
             mode = $4,
             event_types = $5,
             policy = $6,
             max_in_flight = $7,
             headers = $8,
             status = $9,
             status_reason = $10,
             consecutive_failures = case when status <> 'active' and $9 = 'active' then 0 else consecutive_failures end,
             revision = revision + 1,
             updated_at = now()
       where endpoint_id = $1
      returning ${ENDPOINT_COLUMNS}`,
    values: [
      endpointId,
      to.name,
      to.url,
      to.mode,
      to.eventTypes,
      to.policy === undefined ? null : JSON.stringify(to.policy),
      to.maxInFlight ?? null,
      JSON.stringify(to.headers),
      to.status,
      to.statusReason ?? null,
    ],
  });
  return toEndpoint(result.rows[0] as EndpointRow);
}

/** Marks an endpoint as deleted; its row stays, because evidence refers to it. */
export async function markEndpointDeleted(db: Queryable, endpointId: string): Promise<void> {
  await db.query({
    name: 'mark_endpoint_deleted',
    text: `
      update endpoint
         set status = 'disabled',
             status_reason = 'deleted',
             deleted_at = now(),
             revision = revision + 1,
             updated_at = now()
       where endpoint_id = $1`,
    values: [endpointId],
  });
}
