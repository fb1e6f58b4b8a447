import { setTimeout as sleep } from 'node:timers/promises';
import { connectPublisher } from '../../../src/broker/publisher.ts';
import { namesOf } from '../../../src/broker/topology.ts';
import { applyTopology } from '../../../src/broker/topology-apply.ts';
import { createAnnouncer } from '../../../src/pipeline/announce.ts';
import { createDeliveryOperator } from '../../../src/pipeline/operate/deliveries.ts';
import { openEndpointOperator } from '../../../src/roles/parts.ts';
import type { Config } from '../../../src/runtime/config.ts';
import { loadConfig } from '../../../src/runtime/config.ts';
import { inScope } from '../../../src/runtime/scope.ts';
import { resetWatermark } from '../../../src/store/due.ts';
import { migrate } from '../../../src/store/migrate.ts';
import { openPool, type Pool } from '../../../src/store/pool.ts';
import { startProxy } from '../../support/proxy.ts';
import { recordLog } from '../../support/recorded-log.ts';
import { findViolations } from '../support/invariants.ts';
import { createChance } from './chance.ts';
import { bringAbout, type OwnServers, planFaults } from './faults.ts';
import { type Fleet, startFleet, type Target, throughPort } from './fleet.ts';
import { createProducer, openDestinations, type Producer } from './load.ts';

export interface SoakOptions {
  readonly seed: number;
  readonly deliveries: number;
  readonly faults: number;
  readonly client: 'node-fetch' | 'undici';
  /** An empty database, and a broker on which `prefix` is free. */
  readonly databaseUrl: string;
  readonly amqpUrl: string;
  readonly managementUrl?: string | undefined;
  readonly prefix: string;
  /** Where the two listen; a server that moves says so here. */
  readonly targets: { readonly database: Target; readonly broker: Target };
  readonly servers?: OwnServers | undefined;
  /** Told one line now and then. */
  readonly say: (line: string) => void;
}

/** What a run came to. */
export interface SoakReport {
  readonly seed: number;
  readonly client: string;
  readonly deliveries: number;
  readonly tookSeconds: number;
  readonly faults: readonly { readonly fault: string; readonly told: string; readonly atSeconds: number }[];
  readonly processStarts: number;
  readonly states: Readonly<Record<string, number>>;
  readonly outcomes: Readonly<Record<string, number>>;
  /** At the receivers. */
  readonly calls: number;
  readonly effects: number;
  /** Calls for keys that had taken effect before: what at-least-once costs. */
  readonly repeats: number;
  /** Empty: nothing lost, no effect twice, one audit record each. */
  readonly violations: readonly string[];
}

const TIMEOUT_MS = 1_500;
/** Nothing ends any more for so long: it never will. */
const STUCK_AFTER_MS = 120_000;
const TICK_MS = 500;
const TELL_EVERY_MS = 10_000;

function variablesOf({
  databaseUrl,
  amqpUrl,
  managementUrl,
  prefix,
  client,
}: SoakOptions): Record<string, string> {
  return {
    DUEPOST_ENV: 'test',
    DUEPOST_DATABASE_URL: databaseUrl,
    DUEPOST_AMQP_URL: amqpUrl,
    ...(managementUrl === undefined ? {} : { DUEPOST_MANAGEMENT_URL: managementUrl }),
    DUEPOST_BROKER_PREFIX: prefix,
    DUEPOST_BROKER_HEARTBEAT_SECONDS: '2',
    DUEPOST_BROKER_CONFIRM_TIMEOUT_MS: '3000',
    DUEPOST_DATABASE_STATEMENT_TIMEOUT_MS: '3000',
    DUEPOST_HTTP_PORT: '0',
    DUEPOST_LOG_FORMAT: 'json',
    DUEPOST_EGRESS_CLIENT: client,
    DUEPOST_EGRESS_TIMEOUT_MS: String(TIMEOUT_MS),
    DUEPOST_CLAIM_LEASE_MS: '4000',
    DUEPOST_RECONCILER_INTERVAL_MS: '500',
    DUEPOST_RECONCILER_GRACE_MS: '2000',
    DUEPOST_FEEDER_INTERVAL_MS: '500',
    // Short, so that the feeder has something to do.
    DUEPOST_HORIZON_MS: '3000',
    DUEPOST_SHUTDOWN_MS: '10000',
  };
}

/** Delivers under faults, and says what came of it. The same seed makes the same deliveries and the same faults. */
export async function runSoak(options: SoakOptions): Promise<SoakReport> {
  const startedAtMs = performance.now();
  const seconds = (): number => Math.round((performance.now() - startedAtMs) / 100) / 10;
  const chance = createChance(options.seed);
  const { log } = recordLog();
  let report: SoakReport | undefined;
  const stop = await inScope(async (scope) => {
    // Past the proxies of the fleet, but through one that follows a server that moves.
    const ways = {
      database: await scope.own(startProxy(options.targets.database), (p) => p.close()),
      broker: await scope.own(startProxy(options.targets.broker), (p) => p.close()),
    };
    const env = variablesOf({
      ...options,
      databaseUrl: throughPort(options.databaseUrl, ways.database.port),
      amqpUrl: throughPort(options.amqpUrl, ways.broker.port),
    });
    const config = loadConfig({ env });
    await migrate(config.database, log);
    const problems = await applyTopology(config.broker, log);
    if (problems.length > 0) throw new Error(problems.join('\n'));
    // The judge's statements may take long; nobody waits for them but the judge.
    const patient = { ...config.database, statementTimeoutMs: 600_000 };
    const pool = scope.own(openPool(patient, log), (p) => p.end());
    const publisher = await scope.own(connectPublisher(config.broker, log), (p) => p.close());
    const announcer = createAnnouncer({
      publisher,
      log,
      horizonMs: config.horizonMs,
      feederIntervalMs: config.feeder.intervalMs,
    });
    const endpoints = openEndpointOperator({ pool, announcer }, config);
    const destinations = await scope.own(openDestinations(endpoints, chance.fork()), (d) => d.close());
    const producer = createProducer({ publisher, pool, prefix: config.broker.prefix, chance: chance.fork() });
    const fleet = await scope.own(
      startFleet({
        env,
        roles: ['ingress', 'worker', 'worker', 'reconciler'],
        targets: options.targets,
        chance: chance.fork(),
      }),
      (f) => f.stop(),
    );
    const scene = {
      fleet,
      config,
      pool,
      publisher,
      endpoints,
      deliveries: createDeliveryOperator({
        pool,
        publisher,
        announcer,
        deliveriesQueue: namesOf(config.broker.prefix).deliveries,
        timeoutMs: config.egress.timeoutMs,
      }),
      endpointNames: destinations.names,
      servers: options.servers,
      restoreTopology: () => restoreTopology(config, pool),
    };

    const plan = planFaults(chance.fork(), options.faults, { withServers: options.servers !== undefined });
    const told: { fault: string; told: string; atSeconds: number }[] = [];
    let left = options.deliveries;
    for (const [n, fault] of plan.entries()) {
      const share = Math.ceil(left / (plan.length - n + 1));
      left -= share;
      const atSeconds = seconds();
      const [result] = await Promise.all([
        bringAbout(fault, { ...scene, chance: chance.fork() }).catch(
          (error: unknown) => `failed: ${String(error)}`,
        ),
        producer.send(share),
      ]);
      told.push({ fault, told: result, atSeconds });
      options.say(`${seconds()} s  fault ${n + 1} of ${plan.length}: ${fault} (${result})`);
      await sleep(chance.whole(50, 500));
    }
    await producer.send(left);
    const stuck = await waitForTheEnd(pool, producer, options.say);
    await settleDown(fleet, pool);
    report = {
      seed: options.seed,
      client: options.client,
      deliveries: producer.sent(),
      tookSeconds: seconds(),
      faults: told,
      processStarts: fleet.starts(),
      states: await countBy(pool, 'select state as name, count(*)::int as n from delivery group by state'),
      outcomes: await countBy(
        pool,
        'select outcome as name, count(*)::int as n from attempt group by outcome',
      ),
      calls: sum(destinations.receivers.map((r) => r.calls().length)),
      effects: sum(destinations.receivers.map((r) => r.effects().length)),
      repeats: sum(
        destinations.receivers.map((r) => r.calls().filter((call) => call.kind === 'repeat').length),
      ),
      violations: [
        ...stuck,
        ...told
          .filter((t) => t.told.startsWith('failed'))
          .map((t) => `${t.fault} could not be brought about: ${t.told}`),
        ...fleet.crashes,
        ...(await findViolations(pool, { receivers: destinations.receivers, timeoutMs: TIMEOUT_MS })),
      ],
    };
  });
  await stop();
  if (report === undefined) throw new Error('there is no report');
  return report;
}

/** Everything that was sent is in the tables, and everything there has ended; or nothing moves any more. */
async function waitForTheEnd(pool: Pool, producer: Producer, say: SoakOptions['say']): Promise<string[]> {
  let last = '';
  let movedAtMs = performance.now();
  let toldAtMs = 0;
  for (;;) {
    const missing = await producer.sendMissing();
    const { rows } = await pool.query<{ open: number; ended: number }>(
      `select count(*) filter (where due_at is not null)::int as open,
              count(*) filter (where due_at is null)::int as ended
         from delivery`,
    );
    const { open, ended } = rows[0] ?? { open: 0, ended: 0 };
    if (missing === 0 && open === 0) return [];
    const now = `${missing} commands not carried out, ${open} deliveries open, ${ended} ended`;
    const nowMs = performance.now();
    if (now !== last) movedAtMs = nowMs;
    last = now;
    if (nowMs - toldAtMs > TELL_EVERY_MS) {
      say(now);
      toldAtMs = nowMs;
    }
    if (nowMs - movedAtMs > STUCK_AFTER_MS) return [`nothing moves any more: ${now}`];
    await sleep(TICK_MS);
  }
}

/** What was ended by a claim that lapsed may still be called by a worker that does not know. */
async function settleDown(fleet: Fleet, pool: Pool): Promise<void> {
  await sleep(2 * TIMEOUT_MS);
  for (const member of fleet.members) if (member.roles === 'worker') await member.restart();
  await pool.query('analyze');
}

async function restoreTopology(config: Config, pool: Pool): Promise<void> {
  const problems = await applyTopology(config.broker, recordLog().log);
  if (problems.length > 0) throw new Error(problems.join('\n'));
  await resetWatermark(pool);
}

async function countBy(pool: Pool, text: string): Promise<Record<string, number>> {
  const { rows } = await pool.query<{ name: string | null; n: number }>(text);
  return Object.fromEntries(rows.map((row) => [row.name ?? 'none', row.n]));
}

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);
