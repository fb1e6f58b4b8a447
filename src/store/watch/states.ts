import { isFinal, STATES, type State } from '../../domain/state.ts';
import type { Queryable } from '../pool.ts';

/** How many deliveries there are in each state. */
export interface StateCounts {
  readonly counts: Readonly<Record<State, number>>;
  /** Whether any of the numbers comes from the planner's statistics instead of from counting. */
  readonly estimated: boolean;
}

/**
 * Counts deliveries by state without counting a big table: exactly, as far as `atMost` rows go, and from the planner's
 * statistics beyond.
 */
export async function countDeliveries(db: Queryable, atMost: number): Promise<StateCounts> {
  const result = await db.query<{ source: 'all' | 'living' | 'estimate'; state: State; rows: number }>({
    name: 'count_deliveries',
    text: `
      with sample as (
        select state
          from delivery
         limit $1
      ), living as (
        select state
          from delivery
         where due_at is not null
         order by due_at, delivery_id
         limit $1
      )
      select 'all' as source, state, count(*)::float8 as rows
        from sample
       group by state
      union all
      select 'living', state, count(*)::float8
        from living
       group by state
      union all
      select 'estimate', v.state, round(c.reltuples::float8 * v.share)
        from pg_class c
        join pg_stats s
          on s.schemaname = c.relnamespace::regnamespace::text
         and s.tablename = c.relname
         and s.attname = 'state',
             unnest(s.most_common_vals::text::text[], s.most_common_freqs) as v (state, share)
       where c.oid = 'delivery'::regclass
         and c.reltuples > 0`,
    values: [atMost + 1],
  });
  const read = (source: string): Map<State, number> =>
    new Map(result.rows.filter((row) => row.source === source).map((row) => [row.state, row.rows]));
  const all = read('all');
  const living = read('living');
  const estimate = read('estimate');
  const isExact = total(all) <= atMost;
  const isLivingExact = total(living) <= atMost;
  const counts = Object.fromEntries(
    STATES.map((state) => {
      if (isExact) return [state, all.get(state) ?? 0];
      if (isLivingExact && !isFinal(state)) return [state, living.get(state) ?? 0];
      return [state, Math.max(estimate.get(state) ?? 0, living.get(state) ?? 0)];
    }),
  ) as Record<State, number>;
  return { counts, estimated: !isExact };
}

function total(counts: ReadonlyMap<State, number>): number {
  return [...counts.values()].reduce((sum, n) => sum + n, 0);
}

/** What is due and unclaimed, of endpoints that answer and of failing ones. */
export interface Backlog {
  readonly overdue: { readonly ok: number; readonly failing: number };
  /** How overdue the oldest is, in milliseconds; 0: none is. */
  readonly oldestMs: { readonly ok: number; readonly failing: number };
}

/** Measures what waits although its time has come; counts at most so many rows. */
export async function measureBacklog(
  db: Queryable,
  bounds: { readonly atMost: number; readonly failingAfter: number },
): Promise<Backlog> {
  const result = await db.query<{
    ok: number;
    failing: number;
    oldest_ok_ms: number;
    oldest_failing_ms: number;
  }>({
    name: 'measure_backlog',
    text: `
      with front as (
        select delivery_id, endpoint_id, state, due_at
          from delivery
         where due_at is not null
           and due_at <= now()
         order by due_at, delivery_id
         limit $1
      ), judged as (
        select f.due_at, e.consecutive_failures >= $2 as failing
          from front f
          join endpoint e on e.endpoint_id = f.endpoint_id
         where f.state = 'due'
      ), found as (
        select count(*) filter (where not failing)::int as ok,
               count(*) filter (where failing)::int as failing,
               min(due_at) filter (where not failing) as oldest_ok_at,
               min(due_at) filter (where failing) as oldest_failing_at
          from judged
      )
      select ok, failing,
             -- Behind a front of held or failing ones there may be more; it is looked at only when it has to be.
             coalesce(1000 * extract(epoch from now() - coalesce(oldest_ok_at, (
               select d.due_at
                 from delivery d
                 join endpoint e on e.endpoint_id = d.endpoint_id
                where d.due_at is not null
                  and d.due_at >= (select max(due_at) from front)
                  and d.due_at <= now()
                  and d.state = 'due'
                  and e.consecutive_failures < $2
                order by d.due_at
                limit 1))), 0)::float8 as oldest_ok_ms,
             coalesce(1000 * extract(epoch from now() - oldest_failing_at), 0)::float8 as oldest_failing_ms
        from found`,
    values: [bounds.atMost, bounds.failingAfter],
  });
  const row = result.rows[0];
  return {
    overdue: { ok: row?.ok ?? 0, failing: row?.failing ?? 0 },
    oldestMs: { ok: row?.oldest_ok_ms ?? 0, failing: row?.oldest_failing_ms ?? 0 },
  };
}

/** What an endpoint is like, told by one word. */
export type Condition = 'ok' | 'failing' | 'paused' | 'disabled';

/** How many endpoints there are in each condition; deleted ones are none. */
export async function countEndpoints(db: Queryable, failingAfter: number): Promise<Map<Condition, number>> {
  const result = await db.query<{ condition: Condition; rows: number }>({
    name: 'count_endpoints',
    text: `
      select case
               when status <> 'active' then status
               when consecutive_failures >= $1 then 'failing'
               else 'ok'
             end as condition,
             count(*)::int as rows
        from endpoint
       where deleted_at is null
       group by 1`,
    values: [failingAfter],
  });
  return new Map(result.rows.map((row) => [row.condition, row.rows]));
}

/** An endpoint that does not answer as it should. */
export interface TroubledEndpoint {
  readonly endpointId: string;
  readonly name: string;
  readonly status: string;
  readonly failures: number;
}

/** Endpoints that fail or take nothing, the worst first. */
export async function listTroubledEndpoints(db: Queryable, limit: number): Promise<TroubledEndpoint[]> {
  const result = await db.query<{
    endpoint_id: string;
    name: string;
    status: string;
    consecutive_failures: number;
  }>({
    name: 'list_troubled_endpoints',
    text: `
      select endpoint_id, name, status, consecutive_failures
        from endpoint
       where deleted_at is null
         and (consecutive_failures > 0 or status <> 'active')
       order by consecutive_failures desc, name
       limit $1`,
    values: [limit],
  });
  return result.rows.map((row) => ({
    endpointId: row.endpoint_id,
    name: row.name,
    status: row.status,
    failures: row.consecutive_failures,
  }));
}

/** Further things that are worth watching, in one reading. */
export interface Pulse {
  /** Flagged deliveries that have not ended. */
  readonly atRisk: number;
  readonly noticesWaiting: number;
  /** How far ahead of now wake-ups were published. */
  readonly watermarkLeadMs: number;
  /** The database's clock, in milliseconds since the epoch. */
  readonly databaseNowMs: number;
}

/** Reads the pulse; counts at most so many rows of each kind. */
export async function readPulse(db: Queryable, atMost: number): Promise<Pulse> {
  const result = await db.query<{
    at_risk: number;
    notices: number;
    lead_ms: number;
    now_ms: number;
  }>({
    name: 'read_pulse',
    text: `
      select (select count(*)::int
                from (select
                        from delivery
                       where at_risk_at is not null
                         and due_at is not null
                       order by deadline_at, delivery_id
                       limit $1) as risk
             ) as at_risk,
             (select count(*)::int from (select from notice limit $1) as waiting) as notices,
             (select 1000 * extract(epoch from due_at - now())::float8 from watermark) as lead_ms,
             1000 * extract(epoch from clock_timestamp())::float8 as now_ms`,
    values: [atMost],
  });
  const row = result.rows[0];
  if (row === undefined) throw new Error('the database gave no answer');
  return {
    atRisk: row.at_risk,
    noticesWaiting: row.notices,
    watermarkLeadMs: row.lead_ms,
    databaseNowMs: row.now_ms,
  };
}

/** Rows written since the statistics of the database began: rates come from two readings. */
export interface Written {
  readonly accepted: number;
  readonly attempts: number;
  readonly ended: number;
  readonly atMs: number;
}

/** Reads how much was written, from the database's own counters; they are up to a second behind. */
export async function readWritten(db: Queryable): Promise<Written> {
  const result = await db.query<{ accepted: number; attempts: number; ended: number; now_ms: number }>({
    name: 'read_written',
    text: `
      select coalesce(sum(n_tup_ins) filter (where relname = 'delivery'), 0)::float8 as accepted,
             coalesce(sum(n_tup_ins) filter (where relname like 'attempt\\_%'), 0)::float8 as attempts,
             coalesce(sum(n_tup_ins) filter (where relname like 'audit\\_record\\_%'), 0)::float8 as ended,
             1000 * extract(epoch from clock_timestamp())::float8 as now_ms
        from pg_stat_user_tables
       where schemaname = current_schema()`,
    values: [],
  });
  const row = result.rows[0];
  return {
    accepted: row?.accepted ?? 0,
    attempts: row?.attempts ?? 0,
    ended: row?.ended ?? 0,
    atMs: row?.now_ms ?? 0,
  };
}
