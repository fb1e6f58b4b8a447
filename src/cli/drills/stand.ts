import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { countConsumers } from '../../broker/count-consumers.ts';
import { namesOf } from '../../broker/topology.ts';
import { DAY_MS, isoDate } from '../../domain/calendar/dates.ts';
import { isFinal, isState } from '../../domain/state.ts';
import { createEventAcceptor, type EventAcceptor } from '../../pipeline/accept/events.ts';
import { createReminderAcceptor, type ReminderAcceptor } from '../../pipeline/accept/reminders.ts';
import { createDeliveryOperator, type DeliveryOperator } from '../../pipeline/operate/deliveries.ts';
import type { EndpointOperator } from '../../pipeline/operate/endpoints.ts';
import { openCalendars, openEndpointOperator, openParts, type Parts } from '../../roles/parts.ts';
import type { Config } from '../../runtime/config.ts';
import type { Log } from '../../runtime/log.ts';
import { type OwnProcess, startOwnProcess } from '../../runtime/own-process.ts';
import type { Scope } from '../../runtime/scope.ts';
import type { Endpoint } from '../../store/endpoints.ts';
import { requireMigrated } from '../../store/migrate.ts';
import type { Reminder } from '../../store/reminders.ts';
import { startGateway } from './gateway.ts';
import { type DeliveryOutcome, findOutcome } from './outcome.ts';
import { type DrillReceiver, type HandedOn, openPractice, type Script } from './receiver.ts';

/** A throw-away endpoint with the receiver behind it. */
export interface Target {
  readonly endpoint: Endpoint;
  readonly receiver: DrillReceiver;
}

/** A service of somebody's own, which takes the place of the practice receivers. */
export interface Service {
  readonly url: URL;
  /** The secret that it verifies by. */
  readonly secret: string;
}

/** What drills and the demonstration work with: the product's own entrances, and receivers of their own. */
export interface Stand {
  readonly config: Config;
  readonly parts: Parts;
  readonly events: EventAcceptor;
  readonly reminders: ReminderAcceptor;
  readonly endpoints: EndpointOperator;
  readonly deliveries: DeliveryOperator;
  readonly actor: string;
  /** Makes an endpoint that nobody else's events reach; it is removed at the end. */
  openTarget(name: string, script: Script & { readonly policy?: object }): Promise<Target>;
  /** Starts a process of this program that serves roles, and waits until it does; it is stopped at the end. */
  startRoles(roles: readonly string[], variables?: Readonly<Record<string, string>>): Promise<OwnProcess>;
  /** Starts a worker if none takes wake-ups. */
  ensureWorker(): Promise<void>;
  /** Publishes an event to the target alone. */
  publish(target: Target, deliverAt?: Date): Promise<string>;
  /** Schedules a reminder whose notice is due at once and whose contract renews in two months. */
  remind(target: Target): Promise<Reminder>;
  /** Publishes a due wake-up that nobody asked for. */
  wake(deliveryId: string, attempt: number): Promise<void>;
  /** What a service of somebody's own was given so far, by key. */
  handedOn(): readonly HandedOn[];
  outcome(deliveryId: string): Promise<DeliveryOutcome>;
  /** Waits until the delivery has ended, and gives up after a while: what is there then speaks for itself. */
  ended(deliveryId: string): Promise<DeliveryOutcome>;
}

const PATIENCE_MS = 30_000;
const POLL_MS = 50;
const EVENT_TYPE = 'duepost.drill';

/** A receiver on this machine is nothing a real environment may call, and none of its workers is to be killed. */
export function requirePractice({ env }: Config, what: string): void {
  if (env === 'development' || env === 'test') return;
  throw new Error(`${what} is for development and test, not for ${env}: point it at a stack of that kind`);
}

/** Opens the stand on the stack that the configuration points at; the scope removes what it made. */
export async function openStand(
  scope: Scope,
  options: {
    readonly config: Config;
    readonly log: Log;
    readonly actor: string;
    /** Undefined: receivers of our own. */
    readonly service?: Service | undefined;
  },
): Promise<Stand> {
  const { config, log, actor, service } = options;
  const receivers: DrillReceiver[] = [];
  const parts = await openParts(scope, config, log);
  await requireMigrated(parts.pool);
  const names = namesOf(config.broker.prefix);
  if ((await countConsumers(config.broker, names.deliveries)) === undefined) {
    throw new Error(`the broker has no queue ${names.deliveries}: run duepost topology apply`);
  }
  const common = { db: parts.pool, announcer: parts.announcer, timeoutMs: config.egress.timeoutMs };
  const events = scope.own(createEventAcceptor(common), (a) => a.close());
  const reminders = scope.own(createReminderAcceptor({ ...common, calendars: openCalendars(config) }), (a) =>
    a.close(),
  );
  const endpoints = openEndpointOperator(parts, config);
  const deliveries = createDeliveryOperator({
    ...parts,
    deliveriesQueue: names.deliveries,
    timeoutMs: config.egress.timeoutMs,
  });
  const by = { actor, reason: 'the drill is over' };

  async function startRoles(
    roles: readonly string[],
    variables: Readonly<Record<string, string>> = {},
  ): Promise<OwnProcess> {
    const process = scope.own(
      startOwnProcess(['start', '--roles', roles.join(',')], {
        DUEPOST_HTTP_PORT: '0',
        DUEPOST_LOG_LEVEL: 'info',
        ...variables,
      }),
      (p) => p.stop(),
    );
    await process.heard(/\bstarted\b.*\broles\b/);
    return process;
  }

  return {
    config,
    parts,
    events,
    reminders,
    endpoints,
    deliveries,
    actor,
    startRoles,
    handedOn: () => receivers.flatMap((receiver) => receiver.handedOn()),
    async openTarget(name, { policy, ...script }) {
      const opening = service === undefined ? openPractice(script) : startGateway(service.url, script);
      const receiver = await scope.own(opening, (r) => r.close());
      receivers.push(receiver);
      const { endpoint, secret } = await endpoints.create(
        {
          name: `${name}-${randomBytes(4).toString('hex')}`,
          url: receiver.url,
          event_types: [EVENT_TYPE],
          ...(policy === undefined ? {} : { policy }),
          ...(service === undefined ? {} : { secret: service.secret }),
        },
        { actor },
      );
      scope.onStop(() => endpoints.remove(endpoint.endpointId, by));
      receiver.setSecrets([secret]);
      return { endpoint, receiver };
    },
    async ensureWorker() {
      if ((await countConsumers(config.broker, names.deliveries)) === 0) await startRoles(['worker']);
    },
    async publish({ endpoint }, deliverAt) {
      const event = await events.publish({
        idempotencyKey: `drill-${randomBytes(8).toString('hex')}`,
        type: EVENT_TYPE,
        payload: { drill: endpoint.name },
        endpoint: endpoint.endpointId,
        contractRef: endpoint.name,
        deliverAt,
        deadlineAt: undefined,
        actor,
      });
      const deliveryId = event.deliveries[0]?.delivery_id;
      if (deliveryId === undefined) throw new Error(`endpoint ${endpoint.name} was skipped`);
      return deliveryId;
    },
    async remind({ endpoint }) {
      const { reminder } = await reminders.schedule({
        idempotencyKey: `drill-${randomBytes(8).toString('hex')}`,
        contractRef: endpoint.name,
        endpoint: endpoint.endpointId,
        renewalDate: dateIn(60),
        noticePeriod: 'P90D',
        jurisdiction: 'DE-BY',
        timeZone: undefined,
        deadline: undefined,
        deadlineAt: undefined,
        type: undefined,
        payload: { drill: endpoint.name },
        actor,
      });
      return reminder;
    },
    wake: (deliveryId, attempt) => parts.publisher.wake({ deliveryId, attempt }, 0),
    outcome: (deliveryId) => findOutcome(parts.pool, deliveryId),
    ended: (deliveryId) => {
      let last: DeliveryOutcome | undefined;
      return eventually(async () => {
        last = await findOutcome(parts.pool, deliveryId);
        return isState(last.state) && isFinal(last.state) ? last : undefined;
      }).catch((error: unknown) => {
        if (last === undefined) throw error;
        return last;
      });
    },
  };
}

/** The date so many days from today, as UTC has it. */
export function dateIn(days: number): string {
  return isoDate(Math.floor(Date.now() / DAY_MS) + days);
}

/** Asks again until there is an answer. Throws when there is none for half a minute. */
export async function eventually<T>(probe: () => Promise<T | undefined> | T | undefined): Promise<T> {
  const startedAtMs = performance.now();
  for (;;) {
    const answer = await probe();
    if (answer !== undefined) return answer;
    if (performance.now() - startedAtMs > PATIENCE_MS) {
      throw new Error(`nothing came of it within ${PATIENCE_MS / 1000} s`);
    }
    await sleep(POLL_MS);
  }
}
