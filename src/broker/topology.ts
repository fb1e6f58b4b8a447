import { DUE_NOW, TIER_SECONDS, tierOf } from '../domain/wakeup.ts';

/** Every name of the broker that duepost uses; the contract promises them. */
export interface Names {
  /** Topic exchange: commands of other services. */
  readonly commands: string;
  readonly commandsQueue: string;
  /** Exchange and queue of commands that could not be accepted. */
  readonly commandsRejected: string;
  /** Direct exchange: wake-ups enter with the key `now` or a tier. */
  readonly wake: string;
  /** Direct exchange: wake-ups leave the tiers. */
  readonly due: string;
  /** Queue of wake-ups that are due now. */
  readonly deliveries: string;
  /** Queues of the delay ladder, shortest first. */
  readonly tiers: readonly string[];
  /** Exchange and queue of wake-ups nobody could understand. */
  readonly poison: string;
  /** Exchange and queue of wake-ups that left a tier and found no queue. */
  readonly unrouted: string;
  /** Exchange and queue of notices about dead letters. */
  readonly deadLetters: string;
  /** Topic exchange for other services to bind to. */
  readonly notifications: string;
}

export interface ExchangeSpec {
  readonly name: string;
  readonly type: 'direct' | 'topic' | 'fanout';
  readonly arguments: Readonly<Record<string, string>>;
}

export interface QueueSpec {
  readonly name: string;
  readonly arguments: Readonly<Record<string, string | number>>;
}

export interface BindingSpec {
  /** An exchange. */
  readonly source: string;
  /** A queue. */
  readonly destination: string;
  readonly routingKey: string;
}

export interface PolicySpec {
  readonly name: string;
  /** A regular expression over the names of queues. */
  readonly pattern: string;
  readonly definition: Readonly<Record<string, string | number>>;
}

/** Everything durable that duepost needs on a broker, exchanges before what is bound to them. */
export interface Topology {
  readonly names: Names;
  readonly exchanges: readonly ExchangeSpec[];
  readonly queues: readonly QueueSpec[];
  readonly bindings: readonly BindingSpec[];
  readonly policies: readonly PolicySpec[];
}

/** The key of every wake-up that leaves a tier: fixed, so that no dead letter can be unroutable. */
export const LEFT_TIER = 'wake';
const DELIVERY_LIMIT = 20;
const MAX_IN_TIER = 1_000_000;
/**
 * Looking at a message and giving it back counts. RabbitMQ 4 drops at 20 where nothing is said; 3.10 knows no "never".
 */
const DELIVERY_LIMIT_SET_ASIDE = 1_000_000;
const MAX_SET_ASIDE = 100_000;
const MAX_SET_ASIDE_BYTES = 1024 ** 3;

/**
 * Stated on every queue: a virtual host may have another default type, and redeclaring would then fail.
 *
 * A full queue refuses instead of dropping, which also is what at-least-once dead-lettering asks for.
 */
const QUORUM = { 'x-queue-type': 'quorum', 'x-overflow': 'reject-publish' } as const;
const AT_LEAST_ONCE = { 'x-dead-letter-strategy': 'at-least-once' } as const;

export function namesOf(prefix: string): Names {
  const v1 = `${prefix}.v1`;
  return {
    commands: `${prefix}.commands`,
    commandsQueue: `${v1}.commands`,
    commandsRejected: `${v1}.commands.rejected`,
    wake: `${v1}.wake`,
    due: `${v1}.due`,
    deliveries: `${v1}.deliveries`,
    tiers: TIER_SECONDS.map((seconds) => `${v1}.delay.${tierOf(seconds)}`),
    poison: `${v1}.poison`,
    unrouted: `${v1}.unrouted`,
    deadLetters: `${v1}.dead-letters`,
    notifications: `${prefix}.notifications`,
  };
}

/** The one description of every object. Arguments of queues cannot be changed later: a change needs a new version. */
export function topologyOf(prefix: string): Topology {
  const names = namesOf(prefix);
  const setAside = [names.commandsRejected, names.poison, names.unrouted, names.deadLetters];
  return {
    names,
    exchanges: [
      ...setAside.map((name) => exchange(name, 'fanout')),
      exchange(names.commands, 'topic'),
      exchange(names.notifications, 'topic'),
      // Without an alternate exchange: publishers ask for the return, and an alternate would hide it.
      exchange(names.wake, 'direct'),
      exchange(names.due, 'direct', { 'alternate-exchange': names.unrouted }),
    ],
    queues: [
      ...setAside.map(setAsideQueue),
      workQueue(names.commandsQueue, names.commandsRejected),
      workQueue(names.deliveries, names.poison),
      ...names.tiers.map((name, tier) => tierQueue(name, TIER_SECONDS[tier] as number, names.due)),
    ],
    bindings: [
      ...setAside.map((name) => ({ source: name, destination: name, routingKey: '' })),
      { source: names.commands, destination: names.commandsQueue, routingKey: '#' },
      { source: names.wake, destination: names.deliveries, routingKey: DUE_NOW },
      { source: names.due, destination: names.deliveries, routingKey: LEFT_TIER },
      ...names.tiers.map((destination, tier) => ({
        source: names.wake,
        destination,
        routingKey: tierOf(TIER_SECONDS[tier] as number),
      })),
    ],
    // Tunable, or added later, and therefore policies instead of arguments.
    policies: [
      {
        name: `${prefix}-delay`,
        pattern: `^${escapePattern(prefix)}\\.v1\\.delay\\.`,
        definition: { 'max-length': MAX_IN_TIER },
      },
      {
        name: `${prefix}-set-aside`,
        pattern: `^(${setAside.map(escapePattern).join('|')})$`,
        definition: { 'delivery-limit': DELIVERY_LIMIT_SET_ASIDE },
      },
    ],
  };
}

function exchange(
  name: string,
  type: ExchangeSpec['type'],
  args: ExchangeSpec['arguments'] = {},
): ExchangeSpec {
  return { name, type, arguments: args };
}

/** What is worked on; a message that kills its consumer again and again ends, whole, where people see it. */
function workQueue(name: string, deadLetterExchange: string): QueueSpec {
  return {
    name,
    arguments: {
      ...QUORUM,
      ...AT_LEAST_ONCE,
      'x-dead-letter-exchange': deadLetterExchange,
      'x-delivery-limit': DELIVERY_LIMIT,
    },
  };
}

function tierQueue(name: string, seconds: number, deadLetterExchange: string): QueueSpec {
  return {
    name,
    arguments: {
      ...QUORUM,
      ...AT_LEAST_ONCE,
      'x-message-ttl': seconds * 1000,
      'x-dead-letter-exchange': deadLetterExchange,
      'x-dead-letter-routing-key': LEFT_TIER,
    },
  };
}

/** What is kept for people: bounded, and refusing when full, so that the sender keeps what finds no room. */
function setAsideQueue(name: string): QueueSpec {
  return {
    name,
    arguments: { ...QUORUM, 'x-max-length': MAX_SET_ASIDE, 'x-max-length-bytes': MAX_SET_ASIDE_BYTES },
  };
}

function escapePattern(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9_-]/g, '\\$&');
}
