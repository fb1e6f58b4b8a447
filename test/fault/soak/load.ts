import { setTimeout as sleep } from 'node:timers/promises';
import type { Publisher } from '../../../src/broker/publisher.ts';
import { namesOf } from '../../../src/broker/topology.ts';
import type { EndpointOperator } from '../../../src/pipeline/operate/endpoints.ts';
import {
  type PracticeReceiver,
  type ScriptedAnswer,
  startPracticeReceiver,
} from '../../../src/receiver/practice.ts';
import type { Pool } from '../../../src/store/pool.ts';
import { daysFromToday } from '../../support/reminders.ts';
import type { Chance } from './chance.ts';

/** Endpoints and the receivers behind them, by what they are like. */
export interface Destinations {
  /** Of these, deliveries may be paused, held and released. */
  readonly names: readonly string[];
  readonly receivers: readonly PracticeReceiver[];
  close(): Promise<void>;
}

const QUICK_RETRIES = { kind: 'schedule', retry_schedule: [0, 1, 1, 2], max_attempts: 60 };
const KINDS: Readonly<Record<string, { share: number; policy: object; answers: readonly ScriptedAnswer[] }>> =
  {
    steady: { share: 0.6, policy: QUICK_RETRIES, answers: [200] },
    // Never ten failures in a row: an endpoint that fails is probed, which is somebody else's test.
    flaky: {
      share: 0.3,
      policy: QUICK_RETRIES,
      answers: [200, 200, 503, 200, 429, 'lost', 200, 500, 200, 200, 'hang', 200],
    },
    reminders: {
      share: 0.08,
      policy: { kind: 'deadline', base_seconds: 1, max_attempts: 60 },
      answers: [200, 503, 200, 200, 'lost', 200, 408],
    },
    refusing: {
      share: 0.015,
      policy: { kind: 'schedule', retry_schedule: [0, 1], max_attempts: 3 },
      answers: [503],
    },
    late: { share: 0.005, policy: QUICK_RETRIES, answers: [503, 200, 503] },
  };

/** More calls than any script is long for; the last answer of a script repeats. */
const LONG = 400_000;

export async function openDestinations(endpoints: EndpointOperator, chance: Chance): Promise<Destinations> {
  const receivers: PracticeReceiver[] = [];
  for (const [name, { policy, answers }] of Object.entries(KINDS)) {
    const script = answers.length === 1 ? answers : Array.from({ length: LONG }, () => chance.pick(answers));
    const receiver = await startPracticeReceiver({ answers: script });
    const { secret } = await endpoints.create({ name, url: receiver.url, policy }, { actor: 'soak' });
    receiver.setSecrets([secret]);
    receivers.push(receiver);
  }
  return {
    names: Object.keys(KINDS),
    receivers,
    close: async () => {
      await Promise.all(receivers.map((receiver) => receiver.close()));
    },
  };
}

/** A service that publishes commands and, when it does not hear of them, publishes them again under the same key. */
export interface Producer {
  /** Sends so many new commands, without waiting until they are carried out. */
  send(count: number): Promise<void>;
  /** Sends again what is not in the tables yet; how many that were. */
  sendMissing(): Promise<number>;
  readonly sent: () => number;
}

interface Command {
  readonly key: string;
  readonly name: 'event.publish' | 'reminder.schedule';
  readonly body: Buffer;
}

const AT_ONCE = 200;

export function createProducer(options: {
  readonly publisher: Publisher;
  readonly prefix: string;
  readonly pool: Pool;
  readonly chance: Chance;
}): Producer {
  const { publisher, pool, chance } = options;
  const { commands: exchange } = namesOf(options.prefix);
  /** Not known to be in the tables yet. */
  let open: Command[] = [];
  let sent = 0;

  function make(): Command {
    sent += 1;
    const key = `soak-${sent}`;
    let drawn = chance.next();
    const kind =
      Object.keys(KINDS).find((name) => {
        drawn -= KINDS[name]?.share ?? 0;
        return drawn < 0;
      }) ?? 'steady';
    const body = { v: 1, idempotency_key: key, endpoint: kind, payload: { n: sent, text: 'Prämie fällig' } };
    if (kind === 'reminders') {
      const timing = {
        renewal_date: daysFromToday(30),
        notice_period: 'P30D',
        jurisdiction: '24x7',
        time_zone: 'UTC',
      };
      return toCommand(key, 'reminder.schedule', { ...body, contract_ref: `pol-${sent}`, ...timing });
    }
    const inMs = (ms: number): string => new Date(Date.now() + ms).toISOString();
    return toCommand(key, 'event.publish', {
      ...body,
      type: 'order.created',
      ...(chance.isLucky(0.3) ? { deliver_at: inMs(chance.whole(0, 8_000)) } : {}),
      ...(kind === 'late' ? { deadline_at: inMs(12_000 + chance.whole(0, 5_000)) } : {}),
    });
  }

  async function publish(commands: readonly Command[]): Promise<void> {
    for (let from = 0; from < commands.length; from += AT_ONCE) {
      const some = commands.slice(from, from + AT_ONCE);
      // What fails is not in the tables, and is sent again.
      await Promise.allSettled(
        some.map(({ name, key, body }) =>
          publisher.publish({ exchange, routingKey: name, messageId: key, body }),
        ),
      );
    }
  }

  return {
    async send(count) {
      const fresh = Array.from({ length: count }, make);
      open.push(...fresh);
      await publish(fresh);
    },
    async sendMissing() {
      const { rows } = await pool.query<{ key: string }>(
        `select idempotency_key as key from event where idempotency_key = any($1)
          union all select idempotency_key from reminder where idempotency_key = any($1)`,
        [open.map((command) => command.key)],
      );
      const there = new Set(rows.map((row) => row.key));
      open = open.filter((command) => !there.has(command.key));
      await publish(open);
      // One whose window has closed meanwhile is refused, in words, and is nothing that was lost.
      const refused = open.filter((command) => isTooLate(command));
      open = open.filter((command) => !refused.includes(command));
      await sleep(0);
      return open.length;
    },
    sent: () => sent,
  };
}

function toCommand(key: string, name: Command['name'], body: object): Command {
  return { key, name, body: Buffer.from(JSON.stringify(body)) };
}

function isTooLate({ body }: Command): boolean {
  const { deadline_at: deadline } = JSON.parse(body.toString()) as { deadline_at?: string };
  return deadline !== undefined && Date.parse(deadline) < Date.now();
}
