import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { createId, type IdPrefix } from '../../src/domain/ids.ts';
import { insertEndpoint } from '../../src/store/endpoints.ts';
import { ensurePartitions } from '../../src/store/migrate.ts';
import { openPool, type Pool } from '../../src/store/pool.ts';
import { settleAttempts } from '../../src/store/settle.ts';
import { insertEvents, insertReminders, type NewDelivery } from '../../src/store/sources.ts';
import { claimOne } from '../support/attempts.ts';
import { openTestDatabase } from '../support/database.ts';
import { recordLog } from '../support/recorded-log.ts';

/** A database in which it is as late as the test says, and deliveries that live through that time. */
export interface Simulation {
  readonly pool: Pool;
  /** Moves the clock of the database, and makes the partitions that the product would have made by then. */
  travelTo(at: Date): Promise<void>;
  /** Accepts an event; due at once, or when `dueAt` says. */
  publish(options?: { contractRef?: string; dueAt?: Date }): Promise<string>;
  remind(options?: { contractRef?: string }): Promise<string>;
  /** Claims and settles a delivery, answered as told. */
  deliver(deliveryId: string, status?: number): Promise<void>;
  close(): Promise<void>;
}

const LONG_AGO = new Date('2025-01-01T00:00:00Z');
const TIMEOUT_MS = 1_000;

/** Every instant that the product reads is that of the schema `sim`, because it is looked up before the server's own. */
const CLOCK = `
create schema sim;
create table sim.clock (at timestamptz not null);
insert into sim.clock values ('${LONG_AGO.toISOString()}');
create function sim.now() returns timestamptz language sql stable as 'select at from sim.clock';
create function sim.clock_timestamp() returns timestamptz language sql stable as 'select at from sim.clock';
alter function ensure_partitions(int) set search_path = public, sim, pg_catalog;
alter table operation alter column at set default sim.now();
alter table delivery alter column created_at set default sim.now();
alter table reminder alter column created_at set default sim.now(), alter column updated_at set default sim.now();
alter table event alter column created_at set default sim.now();
alter table retention_month alter column begun_at set default sim.now();
alter table legal_hold alter column placed_at set default sim.now()`;

const DROP_PARTITIONS = `
do $$
declare
  part regclass;
begin
  for part in
    select c.oid
      from pg_class c
     where c.relispartition
       and c.relname ~ '_\\d{4}_\\d{2}$'
       and c.relkind = 'r'
  loop
    execute format('drop table %s', part);
  end loop;
end
$$`;

export async function openSimulation(): Promise<Simulation> {
  const database = await openTestDatabase();
  await database.pool.query(CLOCK);
  await database.pool.query(DROP_PARTITIONS);
  const name = new URL(database.url).pathname.slice(1);
  await database.pool.query(`alter database ${name} set search_path = public, sim, pg_catalog`);
  const pool = openPool({ url: database.url, poolSize: 8, statementTimeoutMs: 10_000 }, recordLog().log);
  let now = LONG_AGO;
  const newId = (prefix: IdPrefix): string => createId(prefix, now.getTime(), randomBytes(10));
  const endpointId = newId('ep');
  await insertEndpoint(pool, {
    endpointId,
    name: 'notices',
    url: 'https://notices.example/',
    mode: 'live',
    eventTypes: ['*'],
    policy: undefined,
    maxInFlight: undefined,
    headers: {},
  });

  function plan(key: string): {
    delivery: NewDelivery;
    body: { bytes: Buffer; sha256: Buffer; dataOffset: number };
  } {
    const bytes = Buffer.from(JSON.stringify({ key, name: 'a person' }));
    return {
      delivery: { deliveryId: newId('dlv'), endpointId, idempotencyKey: key, dueAt: now, held: false },
      body: { bytes, sha256: createHash('sha256').update(bytes).digest(), dataOffset: 0 },
    };
  }

  return {
    pool,
    async travelTo(at) {
      now = at;
      await pool.query('update sim.clock set at = $1', [at]);
      await ensurePartitions(pool);
    },
    async publish({ contractRef, dueAt } = {}) {
      const key = randomUUID();
      const { body, delivery } = plan(`${key}:${endpointId}`);
      const eventId = newId('evt');
      await insertEvents(pool, [
        {
          eventId,
          idempotencyKey: key,
          contentSha256: body.sha256,
          type: 'order.created',
          ...(contractRef === undefined ? {} : { contractRef }),
          answer: [{ delivery_id: delivery.deliveryId, endpoint_id: endpointId, state: 'due' }],
          body,
          deliveries: [{ ...delivery, ...(dueAt === undefined ? {} : { dueAt }) }],
          actor: 'test',
          trail: JSON.stringify({ event_id: eventId, type: 'order.created', idempotency_key: key }),
        },
      ]);
      return delivery.deliveryId;
    },
    async remind({ contractRef = `pol-${randomUUID()}` } = {}) {
      const key = randomUUID();
      const { body, delivery } = plan(key);
      const deadlineAt = new Date(now.getTime() + 86_400_000);
      const proof = { made: 'up' };
      await insertReminders(pool, [
        {
          reminderId: newId('rem'),
          idempotencyKey: key,
          contentSha256: body.sha256,
          contractRef,
          type: 'renewal.reminder',
          renewalDate: deadlineAt.toISOString().slice(0, 10),
          noticePeriod: 'P1D',
          jurisdiction: '24x7',
          timeZone: 'UTC',
          dueAt: now,
          deadlineAt,
          lateStart: false,
          dueProof: proof,
          body,
          delivery: { ...delivery, deadlineAt },
          actor: 'test',
          trail: JSON.stringify({
            idempotency_key: key,
            due_at: now,
            deadline_at: deadlineAt,
            due_proof: proof,
          }),
        },
      ]);
      return delivery.deliveryId;
    },
    async deliver(deliveryId, status = 200) {
      const verdict = await claimOne(pool, deliveryId, {
        leaseMs: 5_000,
        timeoutMs: TIMEOUT_MS,
        maxPerEndpoint: 10,
      });
      if (verdict?.verdict !== 'claimed') throw new Error(`no claim: ${JSON.stringify(verdict)}`);
      const { claim } = verdict;
      const ok = status < 300;
      await settleAttempts(
        pool,
        [
          {
            deliveryId,
            attempt: claim.attempt,
            revision: claim.revision,
            decision: ok ? 'deliver' : 'give_up',
            outcome: ok ? 'delivered' : 'terminal',
            endpointFailed: !ok,
            gone: false,
            handedBack: false,
            ...(ok ? {} : { deadReason: 'terminal_response' as const }),
            retryAfterClamped: false,
            startedAgoMs: 0,
            finishedAgoMs: 0,
            durationMs: 1,
            status,
            trail: JSON.stringify({
              attempt: claim.attempt,
              cycle: claim.cycle,
              claimed_at: claim.claimedAt,
              url: claim.url,
              body_sha256: claim.bodySha256.toString('hex'),
              request_headers: {
                'Idempotency-Key': claim.idempotencyKey,
                'webhook-id': deliveryId,
                'X-Delivery-Attempt': String(claim.attempt),
              },
              status,
              duration_ms: 1,
            }),
          },
        ],
        { holder: 'test', timeoutMs: TIMEOUT_MS },
      );
    },
    async close() {
      await pool.end();
      await database.close();
    },
  };
}
