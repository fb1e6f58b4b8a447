import type { Pool } from '../../src/store/pool.ts';

/**
 * Inserts many bare deliveries of an endpoint at once, a millisecond after one another from so long ago on: rows to walk
 * past, with nothing to send.
 */
export async function fillDeliveries(
  pool: Pool,
  fill: {
    readonly endpointId: string;
    readonly state: 'due' | 'held';
    readonly count: number;
    readonly dueAgoMs: number;
  },
): Promise<void> {
  await pool.query(
    `insert into delivery (delivery_id, event_id, endpoint_id, idempotency_key, state, due_at, scheduled_at,
                           trail_length, trail_sha256)
     select 'dlv_' || id, 'evt_' || id, $1, id, $2, at, at, 1, ''
       from generate_series(1, $3::int) as n,
            lateral (select lpad($1 || n, 40, '0') as id,
                            now() - $4 * interval '1 millisecond' + n * interval '1 millisecond' as at) as of_n`,
    [fill.endpointId, fill.state, fill.count, fill.dueAgoMs],
  );
}
