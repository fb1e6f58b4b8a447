import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { withConnection } from '../../../src/broker/connection.ts';
import type { Publisher } from '../../../src/broker/publisher.ts';
import { namesOf } from '../../../src/broker/topology.ts';
import type { DeliveryOperator } from '../../../src/pipeline/operate/deliveries.ts';
import type { EndpointOperator } from '../../../src/pipeline/operate/endpoints.ts';
import { packageRoot } from '../../../src/runtime/build-info.ts';
import type { Config } from '../../../src/runtime/config.ts';
import { KILL_POINTS, type KillPoint } from '../../../src/runtime/kill-point.ts';
import type { Pool } from '../../../src/store/pool.ts';
import type { Chance } from './chance.ts';
import type { Fleet, Member } from './fleet.ts';

/** Servers that belong to this run alone, and may be stopped, killed and frozen. */
export interface OwnServers {
  /** As after a crash: no shutdown, recovery at the next start. */
  restartDatabase(): Promise<void>;
  restartBroker(): Promise<void>;
  /** Kills it and starts it again with what it had stored. */
  crashBroker(): Promise<void>;
  /** Kills it and starts an empty one in its place. */
  loseBroker(): Promise<void>;
  /** Stops every thread of the broker (SIGSTOP), or lets it go on. */
  freezeBroker(on: boolean): void;
  /** Memory is short: publishers are blocked. */
  alarmBroker(on: boolean): Promise<void>;
}

/** What faults are made of. */
export interface Scene {
  readonly fleet: Fleet;
  readonly chance: Chance;
  readonly config: Config;
  /** Past every proxy. */
  readonly pool: Pool;
  readonly publisher: Publisher;
  readonly endpoints: EndpointOperator;
  readonly deliveries: DeliveryOperator;
  readonly endpointNames: readonly string[];
  readonly servers: OwnServers | undefined;
  /** Declares the topology and forgets what was published, as an operator does after the loss of a broker. */
  readonly restoreTopology: () => Promise<void>;
}

/** Brings a fault about, and ends it; what it says is for the report. */
type Fault = (scene: Scene) => Promise<string>;

const POINTS: Readonly<Record<string, readonly KillPoint[]>> = {
  ingress: KILL_POINTS.filter((point) => /^(accept|announce|ack)\./.test(point)),
  worker: KILL_POINTS.filter((point) => /^(announce|claim|call|settle|ack)\./.test(point)),
  reconciler: KILL_POINTS.filter((point) => /^(announce|feed|reconcile|notify)\./.test(point)),
};
const LONGEST_HOLD_MS = 2_500;
const CLOCK_ERROR_MS = 5 * 60_000;
const by = { actor: 'soak', reason: 'a fault was due' };

const one = ({ fleet, chance }: Scene): Member => chance.pick(fleet.members);
/** One of them, or all. */
const some = ({ fleet, chance }: Scene): readonly Member[] =>
  chance.isLucky(0.3) ? fleet.members : [chance.pick(fleet.members)];
const names = (members: readonly Member[]): string => members.map((member) => member.name).join(', ');
const hold = ({ chance }: Scene): Promise<void> => sleep(chance.whole(50, LONGEST_HOLD_MS));

function overProxy(
  server: 'database' | 'broker',
  act: (proxy: Member['database'], scene: Scene) => unknown,
  undo?: (proxy: Member['database']) => unknown,
): Fault {
  return async (scene) => {
    const members = some(scene);
    for (const member of members) act(member[server], scene);
    if (undo !== undefined) {
      await hold(scene);
      for (const member of members) undo(member[server]);
    }
    return names(members);
  };
}

const loseReplies = (server: 'database' | 'broker'): Fault =>
  overProxy(
    server,
    (proxy) => proxy.dropReplies(true),
    (proxy) => {
      proxy.dropReplies(false);
      // What it missed leaves such a connection out of step: it has to be made anew.
      proxy.cut();
    },
  );

/** Faults that need nothing but the servers as they are. */
const FAULTS: Readonly<Record<string, Fault>> = {
  async kill(scene) {
    const members = some(scene);
    for (const member of members) member.kill();
    return names(members);
  },
  async kill_point(scene) {
    const member = one(scene);
    const point = `${scene.chance.pick(POINTS[member.roles] ?? KILL_POINTS)}:${scene.chance.whole(1, 40)}`;
    await member.restart({ DUEPOST_KILL_POINT: point });
    return `${member.name} at ${point}`;
  },
  async rolling_restart(scene) {
    for (const member of scene.fleet.members) await member.restart();
    return 'all, one after the other';
  },
  async wrong_clock(scene) {
    const member = one(scene);
    const shiftMs = scene.chance.pick([-CLOCK_ERROR_MS, CLOCK_ERROR_MS]);
    await member.restart({
      NODE_OPTIONS: `--import ${join(packageRoot, 'test/fault/soak/shift-clock.mjs')}`,
      SHIFT_CLOCK_MS: String(shiftMs),
    });
    return `${member.name} by ${shiftMs} ms`;
  },
  cut_database: overProxy('database', (proxy) => proxy.cut()),
  cut_broker: overProxy('broker', (proxy) => proxy.cut()),
  refuse_database: overProxy(
    'database',
    (proxy) => {
      proxy.refuse(true);
      proxy.cut();
    },
    (proxy) => proxy.refuse(false),
  ),
  refuse_broker: overProxy(
    'broker',
    (proxy) => {
      proxy.refuse(true);
      proxy.cut();
    },
    (proxy) => proxy.refuse(false),
  ),
  silent_database: overProxy(
    'database',
    (proxy) => proxy.freeze(true),
    (proxy) => proxy.freeze(false),
  ),
  silent_broker: overProxy(
    'broker',
    (proxy) => proxy.freeze(true),
    (proxy) => proxy.freeze(false),
  ),
  lost_database_replies: loseReplies('database'),
  lost_broker_replies: loseReplies('broker'),
  cut_at_outcome: overProxy('database', (proxy, { chance }) =>
    proxy.cutWhen('settle_attempts', { deliver: chance.isLucky(0.5) }),
  ),
  cut_at_claim: overProxy('database', (proxy, { chance }) =>
    proxy.cutWhen('claim_deliveries', { deliver: chance.isLucky(0.5) }),
  ),
  async purge({ config }) {
    const { deliveries, tiers } = namesOf(config.broker.prefix);
    let purged = 0;
    await withConnection(config.broker, 'soak', async (connection) => {
      const channel = await connection.createChannel();
      for (const queue of [deliveries, ...tiers]) purged += (await channel.purgeQueue(queue)).messageCount;
    });
    return `${purged} wake-ups`;
  },
  /** Wake-ups that nobody asked for: repeated, out of order, for attempts long past and attempts to come. */
  async stray_wakeups({ pool, publisher, chance }) {
    const { rows } = await pool.query<{ delivery_id: string; attempt: number }>(
      'select delivery_id, attempt from delivery order by delivery_id desc limit 100',
    );
    const strays = rows.flatMap((row) => [row, row]).sort(() => chance.next() - 0.5);
    const sent = await Promise.allSettled(
      strays.map((row) =>
        publisher.wake({ deliveryId: row.delivery_id, attempt: chance.whole(1, row.attempt + 2) }, 0),
      ),
    );
    return `${sent.filter((result) => result.status === 'fulfilled').length} wake-ups`;
  },
  async pause_endpoint(scene) {
    const name = scene.chance.pick(scene.endpointNames);
    await scene.endpoints.pause(name, by);
    await hold(scene);
    await scene.endpoints.resume(name, by);
    return name;
  },
  async cancel({ pool, deliveries, chance }) {
    const { rows } = await pool.query<{ delivery_id: string }>(
      `select delivery_id from delivery where state = 'due' order by delivery_id desc limit 20`,
    );
    if (rows.length === 0) return 'nothing waits';
    const { delivery_id: deliveryId } = chance.pick(rows);
    // It may be under way by now, and is then refused.
    return deliveries.cancel(deliveryId, by).then(
      () => deliveryId,
      () => 'came too late',
    );
  },
  async replay({ deliveries }) {
    const options = { dryRun: false, force: false, signal: AbortSignal.timeout(10_000) };
    const { replayed } = await deliveries.replay({}, options, by);
    return `${replayed} dead letters`;
  },
};

/** Faults of the servers themselves. */
const SERVER_FAULTS: Readonly<Record<string, (servers: OwnServers, scene: Scene) => Promise<string>>> = {
  async restart_database(servers) {
    await servers.restartDatabase();
    return 'immediate';
  },
  async restart_broker(servers) {
    await servers.restartBroker();
    return 'in order';
  },
  async crash_broker(servers) {
    await servers.crashBroker();
    return 'killed, and started again with its data';
  },
  async lose_broker(servers, { restoreTopology }) {
    await servers.loseBroker();
    await restoreTopology();
    return 'killed, and an empty one in its place';
  },
  async freeze_broker(servers, { chance }) {
    servers.freezeBroker(true);
    const forMs = chance.whole(200, 8_000);
    await sleep(forMs);
    servers.freezeBroker(false);
    return `${forMs} ms`;
  },
  async memory_alarm(servers, scene) {
    await servers.alarmBroker(true);
    await hold(scene);
    await servers.alarmBroker(false);
    return 'until it was taken back';
  },
};

/** How much rarer than the others: they take long. */
const RARE: Readonly<Record<string, number>> = {
  crash_broker: 0.4,
  lose_broker: 0.3,
  restart_broker: 0.4,
  rolling_restart: 0.3,
};

/** The faults of a run, in order. */
export function planFaults(
  chance: Chance,
  count: number,
  { withServers }: { withServers: boolean },
): string[] {
  const known = [...Object.keys(FAULTS), ...(withServers ? Object.keys(SERVER_FAULTS) : [])];
  const plan: string[] = [];
  while (plan.length < count) {
    const name = chance.pick(known);
    if (chance.isLucky(RARE[name] ?? 1)) plan.push(name);
  }
  return plan;
}

/** Brings one about and ends it. */
export function bringAbout(name: string, scene: Scene): Promise<string> {
  const fault = FAULTS[name];
  if (fault !== undefined) return fault(scene);
  const ofServer = SERVER_FAULTS[name];
  if (ofServer === undefined || scene.servers === undefined)
    throw new Error(`there is no fault ${name} here`);
  return ofServer(scene.servers, scene);
}
