import { afterAll, beforeAll, expect } from 'vitest';
import { createReminderAcceptor, type ReminderAcceptor } from '../../src/pipeline/accept/reminders.ts';
import { createRescheduler, type Rescheduler } from '../../src/pipeline/timing/reschedule.ts';
import { openCalendars } from '../../src/roles/parts.ts';
import { loadConfig } from '../../src/runtime/config.ts';
import { insertEndpoint } from '../../src/store/endpoints.ts';
import type { Pool } from '../../src/store/pool.ts';
import type { Reminder } from '../../src/store/reminders.ts';
import { settleAttempts } from '../../src/store/settle.ts';
import type { Settlement } from '../../src/store/settlement.ts';
import type { Verdict } from '../../src/store/verdict.ts';
import { claimOne, settlementOf } from '../support/attempts.ts';
import { openTestDatabase, type TestDatabase } from '../support/database.ts';
import { daysFromToday, dueNow, recordAnnouncements } from '../support/reminders.ts';

export const TIMEOUT_MS = 10_000;
const LEASE_MS = 15_000;
export const DAY_MS = 86_400_000;
export const DELIVER = { decision: 'deliver', outcome: 'delivered', status: 200 } as const;

interface Facts {
  state: string;
  due_at: Date | null;
  deadline_at: Date;
  revision: number;
  attempt: number;
  body: string;
  body_sha256: string;
  audits: { state: string; revision: number; deadline_at: string; body_sha256: string; cycle: number }[];
  trail: string[];
  broken_entries: number;
}

/** Reminders of one endpoint, for the tests of a file, with what accepts, moves, claims and settles them. */
export function useRescheduling() {
  let database: TestDatabase;
  let reminders: ReminderAcceptor;
  let rescheduler: Rescheduler;
  const { announcer, announced } = recordAnnouncements();

  beforeAll(async () => {
    database = await openTestDatabase();
    const calendars = openCalendars(loadConfig({ env: { DUEPOST_ENV: 'test' }, needs: [] }));
    const common = { announcer, calendars, timeoutMs: TIMEOUT_MS };
    reminders = createReminderAcceptor({ ...common, db: database.pool });
    rescheduler = createRescheduler({ ...common, pool: database.pool });
    await insertEndpoint(database.pool, {
      endpointId: 'ep_00000000000000000000000000',
      name: 'notices',
      url: 'https://notices.example/renewals',
      mode: 'live',
      eventTypes: ['*'],
      policy: undefined,
      maxInFlight: undefined,
      headers: {},
    });
  });

  afterAll(async () => {
    await reminders.close();
    await database.close();
  });

  async function schedule(changes: Parameters<typeof dueNow>[0] = {}): Promise<Reminder> {
    return (await reminders.schedule(dueNow(changes))).reminder;
  }

  /** Moves a reminder's renewal, and with it its due time, by the P30D that it was scheduled with. */
  function moveTo(reminder: Reminder, days: number, more: object = {}) {
    return rescheduler.reschedule({
      reference: { reminderId: reminder.reminderId },
      renewalDate: daysFromToday(days),
      actor: 'test',
      ...more,
    });
  }

  async function claim(reminder: Reminder, { attempt = 1, leaseMs = LEASE_MS } = {}): Promise<Verdict> {
    return (await claimOne(database.pool, reminder.deliveryId, {
      attempt,
      leaseMs,
      timeoutMs: TIMEOUT_MS,
      holder: 'worker@test',
      maxPerEndpoint: 1_000,
    })) as Verdict;
  }

  async function settle(reminder: Reminder, result: Partial<Settlement>) {
    const [settled] = await settleAttempts(
      database.pool,
      [
        settlementOf(reminder.deliveryId, {
          decision: 'retry',
          outcome: 'retryable',
          trail: JSON.stringify({ attempt: result.attempt ?? 1 }),
          ...result,
        }),
      ],
      { holder: 'worker@test', timeoutMs: TIMEOUT_MS },
    );
    return settled;
  }

  /** Everything that a person can read about a reminder's delivery afterwards. */
  async function factsOf(reminder: Reminder): Promise<Facts> {
    const result = await database.pool.query<Facts>(
      `select d.state, d.due_at, d.deadline_at, d.revision, d.attempt,
              convert_from(b.bytes, 'UTF8') as body, encode(b.sha256, 'hex') as body_sha256,
              (select coalesce(json_agg(json_build_object('state', a.state, 'revision', a.revision, 'cycle', a.cycle,
                        'deadline_at', a.deadline_at, 'body_sha256', encode(a.body_sha256, 'hex')) order by a.cycle), '[]')
                 from audit_record a where a.delivery_id = d.delivery_id) as audits,
              (select array_agg(t.event order by t.entry) from trail t where t.delivery_id = d.delivery_id) as trail,
              (select count(*)::int
                 from (select t.sha256, trail_hash(coalesce(lag(t.sha256) over (order by t.entry), ''::bytea),
                                t.entry, t.at, t.event, t.actor, t.detail) as computed
                         from trail t where t.delivery_id = d.delivery_id) as chain
                where chain.sha256 <> chain.computed) as broken_entries
         from delivery d
         join body b on b.source_id = d.reminder_id
        where d.delivery_id = $1`,
      [reminder.deliveryId],
    );
    const facts = result.rows[0] as Facts;
    expect(facts.broken_entries).toBe(0);
    return facts;
  }

  return {
    announced,
    pool: (): Pool => database.pool,
    rescheduler: (): Rescheduler => rescheduler,
    schedule,
    moveTo,
    claim,
    settle,
    factsOf,
  };
}
