import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createSigner } from '../../src/domain/audit/seal.ts';
import { createKeys, type Evidence, linesOf, makeEvidence, sealAll, verifyAll } from './support.ts';

let evidence: Evidence;
let published: { number: number; sha256: string }[];

beforeAll(async () => {
  evidence = await makeEvidence();
  await sealAll(evidence.pool);
  await evidence.product.endpoints.pause(evidence.destination.endpointId, {
    actor: 'test',
    reason: 'a rest',
  });
  await sealAll(evidence.pool);
  await evidence.product.endpoints.resume(evidence.destination.endpointId, {
    actor: 'test',
    reason: 'rested',
  });
  await sealAll(evidence.pool);
  await evidence.product.endpoints.pause(evidence.destination.endpointId, {
    actor: 'test',
    reason: 'over',
  });
  await sealAll(evidence.pool);
  const seals = await evidence.pool.query<{ seal_number: number; sha256: Buffer }>(
    'select seal_number, sha256 from seal order by seal_number',
  );
  published = seals.rows.map((s) => ({ number: s.seal_number, sha256: s.sha256.toString('hex') }));
});

afterAll(() => evidence.close());

/** Runs SQL as somebody who may do anything, looks what the check of the store says, and takes it back. */
async function tamper(...statements: string[]): Promise<string[]> {
  const { pool } = evidence;
  const client = await pool.connect();
  const tables = await client.query<{ name: string }>(
    `select relname as name
       from pg_class
      where relnamespace = 'public'::regnamespace
        and relkind = 'r'
        and relname <> 'migration'`,
  );
  // No trigger stops somebody who owns the database.
  await client.query('set session_replication_role = replica; create schema backup');
  try {
    for (const { name: table } of tables.rows)
      await client.query(`create table backup.${table} as table ${table}`);
    for (const statement of statements) await client.query(withIds(statement));
    return linesOf(await verifyAll(pool, { published }));
  } finally {
    for (const { name: table } of tables.rows) {
      await client.query(`delete from ${table}`);
      await client.query(`insert into ${table} overriding system value table backup.${table}`);
    }
    await client.query('drop schema backup cascade; set session_replication_role = default');
    client.release();
  }
}

/** Puts the ids of the evidence into a statement. */
function withIds(statement: string): string {
  return statement
    .replaceAll(':reminder', `'${evidence.reminder}'`)
    .replaceAll(':event', `'${evidence.event}'`)
    .replaceAll(':dead', `'${evidence.deadLettered}'`)
    .replaceAll(':cancelled', `'${evidence.cancelled}'`)
    .replaceAll(':waiting', `'${evidence.waiting}'`);
}

/** Computes a chain anew after it was rewritten, as somebody would who knows how it is made. */
const REHASH = (id: string): string => `
do $$
declare
  e record;
  before bytea := '';
begin
  for e in select * from trail where delivery_id = ${id} order by entry loop
    before := trail_hash(before, e.entry, e.at, e.event, e.actor, e.detail);
    update trail set sha256 = before where delivery_id = ${id} and entry = e.entry;
    update audit_record set trail_sha256 = before where delivery_id = ${id} and trail_length = e.entry;
  end loop;
  update delivery set trail_sha256 = before, trail_length = (select max(entry) from trail where delivery_id = ${id})
   where delivery_id = ${id};
end
$$`;

describe('the check of the whole store', () => {
  test('has nothing to say against evidence that nobody touched', async () => {
    const report = await verifyAll(evidence.pool, { published });
    expect(linesOf(report)).toEqual([]);
    expect(report).toMatchObject({ ok: true, seals: 4, deliveries: 5, unsealed: 0 });
  });

  test.each<[string, string | RegExp, ...string[]]>([
    [
      'a trail entry is edited',
      /^trail entry 2 of dlv_/,
      "update trail set detail = replace(detail, '503', '200') where delivery_id = :reminder and entry = 2",
    ],
    [
      'a trail entry is edited and the chain computed anew',
      /^delivery dlv_.* is not what was sealed in seal 1/,
      "update trail set detail = replace(detail, '503', '500') where delivery_id = :reminder and entry = 2",
      'update attempt set status = 500 where delivery_id = :reminder and attempt = 1',
      REHASH(':reminder'),
    ],
    [
      'the instant of an entry is moved by a microsecond',
      /^trail entry 2 of dlv_/,
      "update trail set at = at + interval '1 microsecond' where delivery_id = :reminder and entry = 2",
    ],
    [
      'a trail entry is deleted',
      /^trail entry 3 of dlv_.*entries 2 to 2 are missing/,
      'delete from trail where delivery_id = :reminder and entry = 2',
    ],
    [
      'the last trail entry is deleted, and the head put back',
      /^delivery dlv_.*trail entry 3 was sealed in seal 1, and is missing|^audit record/,
      'delete from trail where delivery_id = :reminder and entry = 3',
      REHASH(':reminder'),
    ],
    [
      'a trail entry is inserted',
      /^trail of dlv_/,
      `insert into trail select kind, delivery_id, 4, at, 'hold', actor, detail, sha256 from trail where delivery_id = :reminder and entry = 3`,
    ],
    [
      'a trail entry is inserted and the chain computed anew',
      /^audit record|^delivery dlv_|^trail/,
      'update trail set entry = 4 where delivery_id = :reminder and entry = 3',
      `insert into trail select kind, delivery_id, 3, at, 'hold', actor, '{}', sha256 from trail where delivery_id = :reminder and entry = 4`,
      'update audit_record set trail_length = 4 where delivery_id = :reminder',
      REHASH(':reminder'),
    ],
    [
      'two entries change places',
      /^trail entry 2 of dlv_/,
      'update trail set entry = -entry where delivery_id = :reminder and entry in (2, 3)',
      'update trail set entry = 5 + entry where delivery_id = :reminder and entry < 0',
    ],
    [
      'an audit record is edited',
      /^audit record 1 of dlv_/,
      "update audit_record set state = 'delivered', dead_reason = null where delivery_id = :dead",
    ],
    [
      'the endpoint in an audit record is edited',
      /^delivery dlv_.* is not what was sealed/,
      "update audit_record set endpoint_url = 'https://elsewhere.example/' where delivery_id = :event",
    ],
    [
      'an audit record is deleted',
      /^audit record of dlv_.*its record is missing/,
      'delete from audit_record where delivery_id = :event',
    ],
    [
      'an audit record is added',
      /^audit record 2 of dlv_.*not sealed/,
      `insert into audit_record select kind, delivery_id, 2, contract_ref, endpoint_id, endpoint_url, state, dead_reason, idempotency_key, body_sha256, attempts, first_attempt_at, finished_at, due_at, deadline_at, revision, in_time, actor, trail_length, trail_sha256, shadow from audit_record where delivery_id = :event`,
    ],
    [
      'an attempt is edited',
      /^attempt 1 of dlv_/,
      'update attempt set status = 200 where delivery_id = :reminder and attempt = 1',
    ],
    [
      'the start of an attempt is edited',
      /^delivery dlv_.*its attempts/,
      "update attempt set started_at = started_at - interval '1 hour' where delivery_id = :event",
    ],
    [
      'an attempt is deleted',
      /^attempt/,
      'delete from attempt where delivery_id = :reminder and attempt = 1',
    ],
    [
      'an attempt is added',
      /^attempts of dlv_/,
      `insert into attempt (kind, delivery_id, attempt, cycle, claimed_at, claimed_by, url, outcome) values ('event', :event, 2, 1, now(), 'x', 'http://x/', 'delivered')`,
    ],
    [
      'the body is exchanged',
      /^body of dlv_.*do not have the hash/,
      "update body set bytes = 'other' where source_id = (select event_id from delivery where delivery_id = :event)",
    ],
    [
      'the body is exchanged with its hash',
      /^attempt 1 of dlv_|^audit record/,
      "update body set bytes = 'other', sha256 = sha256('other') where source_id = (select event_id from delivery where delivery_id = :event)",
    ],
    [
      'the body is erased without a word',
      /^body of dlv_.*no trail entry/,
      'update body set bytes = null, erased_at = now() where source_id = (select event_id from delivery where delivery_id = :event)',
    ],
    [
      'the renewal date is edited',
      /^delivery dlv_.*the reminder it is of/,
      'update reminder set renewal_date = renewal_date + 1 where delivery_id = :reminder',
    ],
    [
      'the due date of a reminder that waits is edited everywhere',
      /^reminder rem_.*its due_at/,
      "update reminder set due_at = due_at + interval '1 day' where delivery_id = :waiting",
      "update delivery set due_at = due_at + interval '1 day', scheduled_at = scheduled_at + interval '1 day' where delivery_id = :waiting",
    ],
    [
      'a reminder that waits is rewritten, chain and all',
      /^delivery dlv_.* is not what was sealed/,
      "update trail set detail = replace(detail, 'pol-9', 'pol-8') where delivery_id = :waiting",
      "update reminder set contract_ref = 'pol-8' where delivery_id = :waiting",
      "update delivery set contract_ref = 'pol-8' where delivery_id = :waiting",
      REHASH(':waiting'),
    ],
    [
      'a delivery says another state',
      /^delivery dlv_/,
      "update delivery set state = 'delivered', dead_reason = null where delivery_id = :dead",
    ],
    [
      'a delivery is deleted, and what belongs to it stays',
      /^delivery dlv_.*its row is missing/,
      'delete from delivery where delivery_id = :event',
    ],
    [
      'a delivery is deleted with all its rows',
      /^delivery dlv_.*its row is missing/,
      ...['delivery', 'trail', 'attempt', 'audit_record'].map(
        (t) => `delete from ${t} where delivery_id = :event`,
      ),
    ],
    [
      'a delivery is deleted with all its rows and its leaf',
      /^seal 1: \d+ of \d+ leaves of events of \d{4}-\d\d belong to nothing/,
      ...['delivery', 'trail', 'attempt', 'audit_record'].map(
        (t) => `delete from ${t} where delivery_id = :event`,
      ),
      'delete from seal_leaf where subject_id = :event',
    ],
    [
      'an event is deleted',
      /^event evt_.*its row is missing/,
      'delete from event where event_id = (select event_id from delivery where delivery_id = :event)',
    ],
    [
      'a reminder is added',
      /^reminder rem_.*its delivery dlv_.* is missing/,
      `insert into reminder select 'rem_01m00000000000000000000000', 'dlv_01m00000000000000000000000', 'another', content_sha256, endpoint_id, contract_ref, type, renewal_date, notice_period, jurisdiction, time_zone_given, time_zone, deadline_period, deadline_given_at, due_at, deadline_at, late_start, due_proof, revision, created_at, updated_at from reminder limit 1`,
    ],
    [
      'a body is added',
      /^body evt_.*belongs to nothing/,
      `insert into body values ('evt_01m00000000000000000000000', 'x', sha256('x'), 0, null)`,
    ],
    [
      'every event partition of the trail is emptied',
      /^delivery dlv_|^trail of dlv_/,
      `do $$ declare p regclass; begin for p in select inhrelid::regclass from pg_inherits where inhparent = 'trail_event'::regclass loop execute format('truncate %s', p); end loop; end $$`,
    ],
    ['every partition of the audit records is emptied', /^audit record of dlv_/, 'truncate audit_record'],
    [
      'an operation is edited',
      /^operation \d+: it is not what was sealed/,
      "update operation set actor = 'somebody else' where operation_id = 1",
    ],
    [
      'an operation is deleted',
      /^operation 1: it was sealed, and is missing/,
      'delete from operation where operation_id = 1',
    ],
    [
      'an operation is added',
      /^operation \d+: it is not sealed/,
      "insert into operation (subject_id, event, actor, detail) values ('x', 'y', 'z', '{}')",
    ],
    [
      'a month is said to be dropped that is not old enough',
      /^operation \d+: it says that \d{4}-\d\d was dropped/,
      `insert into operation (subject_id, event, actor, detail) select 'retention', 'retention.begun', 'x', jsonb_build_object('kind', 'event', 'month', to_char(now(), 'YYYY-MM'), 'older_than', '1d')`,
    ],
    ['a seal is deleted', /^seal 2: it is missing/, 'delete from seal where seal_number = 2'],
    [
      'the last seal is deleted',
      /^seal 4: it was published, and is missing/,
      'delete from seal where seal_number = 4',
    ],
    [
      'seals are deleted and the next one says another tree',
      /^seal 3: its peaks are not those of the seals up to it/,
      'delete from seal where seal_number < 3',
      "update seal set peaks = '' where seal_number = 3",
    ],
    [
      'the statement of a seal is edited',
      /^seal 2: its signature does not fit/,
      `update seal set statement = replace(statement, '"leaves":1', '"leaves":2') where seal_number = 2`,
    ],
    [
      'a leaf in a seal is exchanged',
      /^seal 1: its leaves are not those that were signed/,
      `update seal set leaves = set_byte(leaves, 0, (get_byte(leaves, 0) + 1) % 256) where seal_number = 1`,
    ],
    [
      'two seals change places',
      /^seal 1: its statement is that of seal 2/,
      'update seal set seal_number = -seal_number where seal_number in (1, 2)',
      'update seal set seal_number = 3 + seal_number where seal_number < 0',
    ],
    [
      'a leaf is removed',
      /^seal 1: 1 of|not sealed and does not wait/,
      'delete from seal_leaf where subject_id = :event',
    ],
    [
      'a leaf is moved to another delivery',
      /^delivery dlv_|^audit record/,
      'update seal_leaf set subject_id = :dead where subject_id = :event',
    ],
  ])('finds that %s', async (_, expected, ...statements) => {
    const found = await tamper(...statements);
    expect(
      found.filter((line) => line.match(expected)).length,
      found.join('\n') || 'nothing was found',
    ).toBeGreaterThan(0);
  });

  test('finds a seal that was replaced by one of another key', async () => {
    const forger = createSigner(createKeys().privateKey);
    const seal = (await evidence.pool.query('select statement from seal where seal_number = 3')).rows[0] as {
      statement: string;
    };
    const text = seal.statement.replace(/"key_id":"[0-9a-f]+"/, `"key_id":"${forger.keyId}"`);
    const found = await tamper(
      `update seal set statement = '${text}', signature = '\\x${forger.sign(text).toString('hex')}', sha256 = sha256('\\x00'::bytea || convert_to('${text}', 'UTF8')) where seal_number = 3`,
    );
    expect(found.join('\n')).toContain(`seal 3: it is signed by the key ${forger.keyId}`);
    expect(found.join('\n')).toContain('it is not the one that was published');
  });
});

describe('the database', () => {
  test.each(['trail', 'audit_record', 'operation', 'seal', 'seal_leaf'])(
    'refuses to change, remove or empty rows of %s',
    async (table) => {
      const { pool } = evidence;
      const column = { operation: 'actor', seal: 'statement', seal_leaf: 'subject_id' }[table] ?? 'actor';
      await expect(pool.query(`update ${table} set ${column} = 'x'`)).rejects.toThrow('append-only');
      await expect(pool.query(`delete from ${table}`)).rejects.toThrow('append-only');
      await expect(pool.query(`truncate ${table}`)).rejects.toThrow('append-only');
    },
  );

  test('refuses to empty a single partition', async () => {
    const { pool } = evidence;
    const partitions = await pool.query<{ name: string }>(
      "select inhrelid::regclass::text as name from pg_inherits where inhparent = 'trail_event'::regclass",
    );
    for (const { name: partition } of partitions.rows)
      await expect(pool.query(`truncate ${partition}`)).rejects.toThrow('append-only');
  });
});

test('has nothing to say any more once everything is put back', async () => {
  expect(linesOf(await verifyAll(evidence.pool, { published }))).toEqual([]);
});
