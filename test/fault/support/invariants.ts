import type { PracticeCall, PracticeReceiver } from '../../../src/receiver/practice.ts';
import type { Pool } from '../../../src/store/pool.ts';

/** What contract section 3 says of the tables; each finds what breaks it. */
const IN_THE_TABLES: Readonly<Record<string, string>> = {
  'has not ended': `
    select delivery_id, state as seen
      from delivery
     where due_at is not null`,
  'has not exactly one audit record per cycle': `
    select d.delivery_id, format('%s records in %s cycles', count(r.cycle), d.cycle) as seen
      from delivery d
      left join audit_record r on r.delivery_id = d.delivery_id
     where d.due_at is null
     group by d.delivery_id, d.cycle
    having count(r.cycle) <> d.cycle or max(r.cycle) <> d.cycle`,
  'ended otherwise than its audit record says': `
    select d.delivery_id, format('%s, recorded as %s', d.state, r.state) as seen
      from delivery d
      join audit_record r on r.delivery_id = d.delivery_id and r.cycle = d.cycle
     where d.due_at is null
       and (r.state <> d.state or r.dead_reason is distinct from d.dead_reason)`,
  'has another body than its audit record': `
    select r.delivery_id, format('cycle %s: %s recorded, %s stored', r.cycle, encode(r.body_sha256, 'hex'), encode(b.sha256, 'hex')) as seen
      from audit_record r
      join delivery d on d.delivery_id = r.delivery_id
      join body b on b.source_id = coalesce(d.reminder_id, d.event_id)
     where r.body_sha256 <> b.sha256`,
  'has attempts that are not numbered from 1 on, or without an outcome': `
    select d.delivery_id, format('%s of %s, %s open', count(a.attempt), d.attempt, count(*) filter (where a.outcome is null)) as seen
      from delivery d
      join attempt a on a.delivery_id = d.delivery_id
     where d.due_at is null
     group by d.delivery_id, d.attempt
    having count(a.attempt) <> d.attempt or max(a.attempt) <> d.attempt or bool_or(a.outcome is null)`,
  'has another number of attempts than its audit records': `
    select r.delivery_id, format('cycle %s: %s recorded, %s made', r.cycle, r.attempts, count(a.attempt)) as seen
      from audit_record r
      left join attempt a on a.delivery_id = r.delivery_id and a.cycle = r.cycle
     group by r.delivery_id, r.cycle, r.attempts
    having r.attempts <> count(a.attempt)`,
  'was delivered more or less than once': `
    select d.delivery_id, format('%s, %s attempts delivered', d.state, count(a.attempt)) as seen
      from delivery d
      left join attempt a on a.delivery_id = d.delivery_id and a.outcome = 'delivered'
     group by d.delivery_id, d.state
    having (d.state = 'delivered' and count(a.attempt) = 0)
        or count(a.attempt) filter (where not a.late) > 1
        or (d.state <> 'delivered' and count(a.attempt) filter (where not a.late) > 0)`,
  'was claimed early': `
    select a.delivery_id, format('attempt %s, %s before %s', a.attempt, a.claimed_at, coalesce(b.next_due_at, d.scheduled_at)) as seen
      from attempt a
      join delivery d on d.delivery_id = a.delivery_id
      left join attempt b on b.delivery_id = a.delivery_id and b.attempt = a.attempt - 1
     where d.revision = 1
       -- Not manual_attempts, which a replay sets back.
       and not exists (select from trail t where t.delivery_id = a.delivery_id and t.event = 'retry_now')
       and (b.attempt is null or b.cycle = a.cycle)
       and a.claimed_at < coalesce(b.next_due_at, d.scheduled_at)`,
  'was claimed when no call could end before the deadline': `
    select a.delivery_id, format('attempt %s, %s with deadline %s', a.attempt, a.claimed_at, d.deadline_at) as seen
      from attempt a
      join delivery d on d.delivery_id = a.delivery_id
     where d.revision = 1
       and a.claimed_at > d.deadline_at - $1 * interval '1 millisecond'`,
  'has a broken trail': `
    with entries as (
      select delivery_id, entry, sha256,
             trail_hash(coalesce(lag(sha256) over w, ''::bytea), entry, at, event, actor, detail) as computed,
             row_number() over w as place
        from trail
      window w as (partition by delivery_id order by entry)
    ), chains as (
      select delivery_id, count(*) as length, bool_and(sha256 = computed and entry = place) as sound,
             (array_agg(sha256 order by entry desc))[1] as head
        from entries
       group by delivery_id
    )
    select d.delivery_id, format('%s entries of %s', coalesce(c.length, 0), d.trail_length) as seen
      from delivery d
      left join chains c on c.delivery_id = d.delivery_id
     where c.sound is not true
        or c.length <> d.trail_length
        or c.head <> d.trail_sha256`,
};

interface AttemptRow {
  readonly delivery_id: string;
  readonly attempt: number;
  readonly outcome: string | null;
  readonly late: boolean;
  readonly claimed_at: Date;
  readonly deadline_at: Date | null;
  readonly state: string;
  readonly body_sha256: string;
}

/** A violation is told in full so many times, and counted from there on. */
const TOLD = 5;
/** Both clocks are this host's, but the database's has microseconds. */
const CLOCK_MS = 2;

/**
 * Looks at the tables and at what the receivers saw, and names everything that contradicts contract section 3.
 *
 * To be called when all is quiet: a delivery that has not ended is a violation.
 *
 * @param receivers  every receiver that deliveries went to
 */
export async function findViolations(
  pool: Pool,
  of: { readonly receivers: readonly PracticeReceiver[]; readonly timeoutMs: number },
): Promise<string[]> {
  const violations: string[] = [];
  for (const [what, text] of Object.entries(IN_THE_TABLES)) {
    const values = text.includes('$1') ? [of.timeoutMs] : [];
    const { rows } = await pool.query<{ delivery_id: string; seen: string }>(text, values);
    for (const row of rows.slice(0, TOLD)) violations.push(`${row.delivery_id} ${what}: ${row.seen}`);
    if (rows.length > TOLD) violations.push(`and ${rows.length - TOLD} more ${what}`);
  }
  const { rows } = await pool.query<AttemptRow>(
    `select a.delivery_id, a.attempt, a.outcome, a.late, a.claimed_at, d.deadline_at, d.state,
            encode(b.sha256, 'hex') as body_sha256
       from attempt a
       join delivery d on d.delivery_id = a.delivery_id
       join body b on b.source_id = coalesce(d.reminder_id, d.event_id)
      order by a.delivery_id, a.attempt`,
  );
  const atReceivers = judgeReceivers(rows, of.receivers);
  violations.push(...atReceivers.slice(0, 5 * TOLD));
  if (atReceivers.length > 5 * TOLD)
    violations.push(`and ${atReceivers.length - 5 * TOLD} more at the receivers`);
  return violations;
}

function judgeReceivers(rows: readonly AttemptRow[], receivers: readonly PracticeReceiver[]): string[] {
  const attempts = groupBy(rows, (row) => row.delivery_id);
  const calls = groupBy(
    receivers.flatMap((r) => r.calls()),
    (call) => call.deliveryId ?? 'unnamed',
  );
  const effects = new Set(receivers.flatMap((r) => r.effects().map((e) => e.deliveryId)));
  const found = [...calls].flatMap(([deliveryId, made]) =>
    judgeCalls(deliveryId, made, attempts.get(deliveryId) ?? []),
  );
  for (const [deliveryId, [first]] of attempts) {
    if (first?.state === 'delivered' && !effects.has(deliveryId))
      found.push(`${deliveryId} was delivered and had no effect`);
  }
  return found;
}

function judgeCalls(
  deliveryId: string,
  calls: readonly PracticeCall[],
  attempts: readonly AttemptRow[],
): string[] {
  const found: string[] = [];
  const tell = (what: string): number => found.push(`${deliveryId} ${what}`);
  const byNumber = new Map(attempts.map((a) => [a.attempt, a]));
  if (new Set(calls.map((c) => `${c.key} ${c.bodySha256}`)).size > 1)
    tell('was sent with several keys or bodies');
  if (calls.some((c) => c.verified !== true)) tell('was called with a signature that does not hold');
  if (calls.filter((c) => c.kind === 'first').length > 1) tell('took effect more than once');
  for (const call of calls) {
    const attempt = byNumber.get(call.attempt ?? 0);
    if (attempt === undefined) {
      tell(`was called for attempt ${call.attempt}, of which there is no row`);
      continue;
    }
    if (call.bodySha256 !== attempt.body_sha256) tell('was sent other bytes than were stored');
    if (call.at.getTime() < attempt.claimed_at.getTime() - CLOCK_MS)
      tell(`attempt ${call.attempt} was called before its claim`);
    if (attempt.deadline_at !== null && call.at > attempt.deadline_at)
      tell(`attempt ${call.attempt} was called after the deadline`);
  }
  for (const [number, made] of groupBy(calls, (c) => c.attempt)) {
    // A kept connection that closes as it is used again is tried once more with the same bytes (docs/egress.md).
    const again = made.length === 2 && made[0]?.answered === undefined;
    if (made.length > 1 && !again) tell(`attempt ${number} was called ${made.length} times`);
  }
  const first = calls.find((c) => c.kind === 'first');
  const known = first && byNumber.get(first.attempt ?? 0);
  const after = first && calls.some((c) => (c.attempt ?? 0) > (first.attempt ?? 0));
  if (after && known?.outcome === 'delivered' && !known.late)
    tell('was called again although it was known to be delivered');
  return found;
}

function groupBy<T, K>(items: readonly T[], keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}
