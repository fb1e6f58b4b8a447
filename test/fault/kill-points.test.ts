import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { namesOf } from '../../src/broker/topology.ts';
import { createKey } from '../../src/pipeline/operate/keys.ts';
import { KILL_POINTS, type KillPoint } from '../../src/runtime/kill-point.ts';
import type { OwnProcess } from '../../src/runtime/own-process.ts';
import { type AmqpClient, openAmqpClient } from '../support/amqp-client.ts';
import {
  type Destination,
  drainQueue,
  inMs,
  openDestination,
  outcomeOf,
  publishTo,
  purgeEverything,
  QUICK,
  startProcess,
} from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { daysFromToday, dueNow } from '../support/reminders.ts';
import { until } from '../support/until.ts';
import { findViolations } from './support/invariants.ts';

/** How a process comes to pass a point, and whatever else must hold when all is over. */
interface Passage {
  readonly roles: string;
  /** The passing at which it dies; the first if left out. */
  readonly at?: number;
  readonly prepare?: () => Promise<unknown>;
  readonly provoke: (doomed: OwnProcess) => Promise<unknown>;
  /** Waits until what was asked for is in the tables, now that somebody lives to do it. */
  readonly arrives?: () => Promise<unknown>;
  readonly alsoHolds?: () => Promise<unknown>;
}

const FEW = 4;
let product: TestProduct;
let client: AmqpClient;
let destination: Destination;
let unwilling: Destination;
let doomed: OwnProcess | undefined;

beforeAll(async () => {
  product = await openTestProduct({
    env: {
      ...QUICK,
      DUEPOST_HORIZON_MS: '1000',
      DUEPOST_EGRESS_TIMEOUT_MS: '1500',
      DUEPOST_CLAIM_LEASE_MS: '3500',
    },
  });
  client = await openAmqpClient(product);
  destination = await openDestination(product);
  unwilling = await openDestination(product, {
    answers: [503],
    policy: { kind: 'schedule', retry_schedule: [0], max_attempts: 1 },
  });
});

// A point that was never passed must not take what the next test sends.
afterEach(() => doomed?.stop());

afterAll(async () => {
  await client.close();
  await Promise.all([destination.receiver.close(), unwilling.receiver.close()]);
  await product.close();
});

const some = <T>(make: (n: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: FEW }, (_, n) => make(n)));

let keys = 0;

/** Commands of another service; what they become is told by their keys. */
function sendCommands(): Promise<unknown> {
  return some(() =>
    client.send(
      'event.publish',
      Buffer.from(
        JSON.stringify({
          v: 1,
          type: 'order.created',
          payload: { n: 1 },
          endpoint: destination.name,
          idempotency_key: `command-${keys++}`,
        }),
      ),
    ),
  );
}

const publishSome = (): Promise<unknown> => some(() => publishTo(product, destination));
/** As many rows as keys: a command that was acknowledged has been carried out, once. */
async function everyCommandIsCarriedOut(): Promise<void> {
  await until('every command to be carried out', async () => {
    const { rows } = await product.parts.pool.query(
      `select count(*)::int as n from event where idempotency_key like 'command-%'`,
    );
    return rows[0].n === keys;
  });
}

const entrance: Passage = {
  roles: 'ingress',
  at: 2,
  provoke: sendCommands,
  arrives: everyCommandIsCarriedOut,
};
/** Commands that come together are accepted together: there may be no second passing. */
const acceptance: Passage = { ...entrance, at: 1 };
const worker: Passage = { roles: 'worker', at: 2, provoke: publishSome };

let contract: string;
let reminderId: string;
/** A reminder that is due in a minute is moved to a time that has come. */
const rescheduling: Passage = {
  roles: 'ingress',
  prepare: async () => {
    const { reminder } = await product.reminders.schedule(
      dueNow({ endpoint: destination.name, renewalDate: daysFromToday(90) }),
    );
    contract = reminder.contractRef;
    reminderId = reminder.reminderId;
  },
  provoke: () =>
    client.send(
      'reminder.reschedule',
      Buffer.from(JSON.stringify({ v: 1, contract_ref: contract, renewal_date: daysFromToday(30) })),
      { messageId: `move-${reminderId}` },
    ),
  arrives: () =>
    until('the new timing', async () => {
      const { rows } = await product.parts.pool.query(
        'select renewal_date::text, revision from reminder where reminder_id = $1',
        [reminderId],
      );
      return rows[0].renewal_date === daysFromToday(30) && rows[0].revision === 2;
    }),
};

let dead: string[] = [];
const replaying: Passage = {
  roles: 'api',
  prepare: async () => {
    const stop = await product.start(['worker']);
    dead = (await some(() => publishTo(product, unwilling))).map((event) => event.deliveryId);
    await allEnded();
    await stop();
    unwilling.receiver.setAnswers([200]);
  },
  provoke: async (doomed) => {
    const { key } = await createKey(
      product.parts.pool,
      { name: `kill-${randomUUID()}`, scopes: ['admin'] },
      { actor: 'test' },
    );
    const url = /at (http\S+)/.exec(await doomed.heard(/duepost: .* at http/))?.[1];
    const asked = fetch(`${url}/v1/dead-letters/replay`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ filter: { endpoint_id: unwilling.endpointId } }),
    });
    await expect(asked).rejects.toThrow();
  },
  alsoHolds: async () => {
    for (const deliveryId of dead) {
      const { auditRecords } = await outcomeOf(product, deliveryId);
      expect(auditRecords.map((record) => record.state)).toEqual(['dead_lettered', 'delivered']);
    }
    unwilling.receiver.setAnswers([503]);
  },
};

const PASSAGES: Readonly<Record<KillPoint, Passage>> = {
  'accept.planned': acceptance,
  'accept.committed': acceptance,
  'announce.started': entrance,
  'announce.confirmed': entrance,
  'claim.committed': worker,
  'call.started': worker,
  'call.answered': worker,
  'settle.committed': worker,
  'ack.due': { ...worker, at: 1 },
  'ack.sent': { ...entrance, at: 1 },
  'feed.confirmed': {
    roles: 'reconciler',
    // Beyond what is announced at acceptance: the feeder's.
    prepare: async () => {
      await some(() => publishTo(product, destination, { deliverAt: inMs(3_000) }));
      await product.parts.announcer.drain();
      await purgeEverything(product);
    },
    provoke: () => Promise.resolve(),
  },
  'reconcile.confirmed': {
    roles: 'reconciler',
    prepare: async () => {
      await publishSome();
      await product.parts.announcer.drain();
      await purgeEverything(product);
    },
    provoke: () => Promise.resolve(),
  },
  'notify.confirmed': {
    roles: 'reconciler',
    prepare: async () => {
      await drainQueue(product, namesOf(product.config.broker.prefix).deadLetters);
      const stop = await product.start(['worker']);
      dead = (await some(() => publishTo(product, unwilling))).map((event) => event.deliveryId);
      await allEnded();
      await stop();
    },
    provoke: () => Promise.resolve(),
    alsoHolds: async () => {
      await until('every notice to be gone', async () => {
        const { rows } = await product.parts.pool.query('select count(*)::int as n from notice');
        return rows[0].n === 0;
      });
      const notices = await drainQueue(product, namesOf(product.config.broker.prefix).deadLetters);
      const told = notices.map((notice) => JSON.parse(notice.content.toString()).delivery_id);
      // At least once: what was published before the kill is published again.
      expect(new Set(told)).toEqual(new Set(dead));
    },
  },
  'reschedule.written': rescheduling,
  'reschedule.committed': rescheduling,
  'replay.committed': replaying,
};

function allEnded(): Promise<unknown> {
  return until('every delivery to end', async () => {
    const { rows } = await product.parts.pool.query(
      `select 1 from delivery where due_at is not null and due_at < now() + interval '1 hour' limit 1`,
    );
    return rows.length === 0;
  });
}

test.each(KILL_POINTS)('kill -9 at %s loses nothing and repeats nothing', async (point) => {
  const { roles, at = 1, prepare, provoke, arrives, alsoHolds } = PASSAGES[point];
  await prepare?.();
  doomed = await startProcess(product, roles, { DUEPOST_KILL_POINT: `${point}:${at}` });
  await provoke(doomed);
  expect(await doomed.ended).toEqual({ code: undefined, signal: 'SIGKILL' });

  const stop = await product.start(['ingress', 'worker', 'reconciler']);
  await arrives?.();
  await allEnded();
  await alsoHolds?.();
  await stop();
  const { receiver } = destination;
  expect(
    await findViolations(product.parts.pool, {
      receivers: [receiver, unwilling.receiver],
      timeoutMs: product.config.egress.timeoutMs,
    }),
  ).toEqual([]);
});
