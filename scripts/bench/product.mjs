// duepost under measurement: a database and a prefix of its own, built files, roles as processes of their own.

import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { EVENT_TYPE, payloadOf, SECRET } from './call.mjs';
import { openDatabase } from './databases.mjs';
import { remember } from './leftovers.mjs';
import { importProduct, root } from './modules.mjs';

const quiet = {
  error: tell,
  warn: tell,
  info() {},
  debug() {},
  fault: (event, error) => tell(event, { error }),
  child: () => quiet,
  flush: async () => {},
};

function tell(event, fields) {
  if (event !== 'topology.policies_left_out')
    process.stderr.write(`  duepost: ${event} ${fields?.error?.stack ?? JSON.stringify(fields ?? {})}\n`);
}

/** Of what a process says, only what a measurement must not hide. */
function tellFaults(chunk) {
  for (const line of String(chunk).split('\n'))
    if (/ error /.test(line)) process.stderr.write(`  duepost: ${line}\n`);
}

const templates = new Map();

/** A migrated database to copy, one for each build. */
async function findTemplate(folder) {
  if (!templates.has(folder)) {
    const database = await openDatabase();
    const { migrate } = await importProduct('store/migrate.js', folder);
    await migrate({ url: database.url, poolSize: 2, statementTimeoutMs: 60_000 }, quiet);
    templates.set(folder, database);
  }
  return templates.get(folder);
}

/** Removes what the runs shared. */
export async function dropTemplates() {
  for (const database of templates.values()) await database.close();
  templates.clear();
}

/**
 * Opens the product for one run, without any role.
 *
 * @param options `url` of the sink; `client`; `folder` of another build; `env` for its processes;
 *   `maxInFlight` at each endpoint: by default more than a worker fetches, so that one endpoint's backlog is not sent away
 */
export async function openProduct({ url, client = 'undici', folder = root, env = {}, maxInFlight = 512 }) {
  const database = await openDatabase({ template: (await findTemplate(folder)).name });
  const prefix = `bench${randomBytes(5).toString('hex')}`;
  const variables = {
    DUEPOST_ENV: 'development',
    DUEPOST_DATABASE_URL: database.url,
    DUEPOST_BROKER_PREFIX: prefix,
    DUEPOST_EGRESS_CLIENT: client,
    DUEPOST_LOG_LEVEL: 'warn',
    DUEPOST_LOG_FORMAT: 'human',
    DUEPOST_HTTP_PORT: '0',
    ...env,
  };
  const [{ loadConfig }, { inScope }, parts, { createEventAcceptor }, { applyTopology }] = await Promise.all(
    [
      'runtime/config.js',
      'runtime/scope.js',
      'roles/parts.js',
      'pipeline/accept/events.js',
      'broker/topology-apply.js',
    ].map((path) => importProduct(path, folder)),
  );
  const config = loadConfig({ env: { ...process.env, ...variables } });
  const forget = remember(() => deleteObjects(config.broker, folder));
  const problems = await applyTopology(config.broker, quiet);
  if (problems.length > 0) throw new Error(problems.join('\n'));
  let opened;
  const stopParts = await inScope(async (scope) => {
    const own = await parts.openParts(scope, config, quiet);
    const common = { db: own.pool, announcer: own.announcer, timeoutMs: config.egress.timeoutMs };
    opened = {
      parts: own,
      events: scope.own(createEventAcceptor(common), (a) => a.close()),
      operator: parts.openEndpointOperator(own, config),
    };
  });
  const children = new Set();
  const { pool } = opened.parts;

  async function addEndpoint(name, path = '/ok', fields = {}) {
    const { endpoint } = await opened.operator.create(
      {
        name,
        url: new URL(path, url).href,
        max_in_flight: maxInFlight,
        secret: SECRET,
        event_types: ['*'],
        ...fields,
      },
      { actor: 'bench' },
    );
    return endpoint;
  }

  async function request(number, { endpoint, deliverAt } = {}) {
    return opened.events.publish({
      idempotencyKey: `k${number}`,
      type: EVENT_TYPE,
      payload: payloadOf(number),
      endpoint,
      contractRef: undefined,
      deliverAt,
      deadlineAt: undefined,
      actor: 'bench',
    });
  }

  return {
    ...opened,
    config,
    database,
    pool,
    prefix,
    addEndpoint,
    /** A key for the HTTP API: `{ key }`. */
    async createKey() {
      const { createKey } = await importProduct('pipeline/operate/keys.js', folder);
      const name = `bench ${randomBytes(4).toString('hex')}`;
      return createKey(pool, { name, scopes: ['publish'] }, { actor: 'bench' });
    },
    request,
    /** Accepts events as fast as it goes, `window` at a time. */
    async fill(count, { first = 0, window = 2_000, ...options } = {}) {
      for (let start = first; start < first + count; start += window) {
        const numbers = Array.from({ length: Math.min(window, first + count - start) }, (_, i) => start + i);
        await Promise.all(numbers.map((n) => request(n, options)));
      }
      await opened.parts.announcer.drain();
    },
    /** Starts roles as a process of their own. */
    startRoles(roles, { execArgv = [], env: more = {} } = {}) {
      const child = spawn(
        process.execPath,
        [...execArgv, join(folder, 'dist/main.js'), 'start', '--roles', roles],
        { cwd: folder, env: { ...process.env, ...variables, ...more }, stdio: ['ignore', 'ignore', 'pipe'] },
      );
      child.stderr.on('data', tellFaults);
      const role = {
        pid: child.pid,
        async stop() {
          children.delete(role);
          forgetRole();
          if (child.exitCode !== null || child.signalCode !== null) return;
          const gone = once(child, 'exit');
          child.kill('SIGTERM');
          const timer = setTimeout(() => child.kill('SIGKILL'), 40_000);
          await gone;
          clearTimeout(timer);
        },
      };
      children.add(role);
      const forgetRole = remember(async () => void child.kill('SIGKILL'));
      return role;
    },
    /** Waits until nothing is to be done any more. */
    async untilEnded() {
      for (;;) {
        const { rowCount } = await pool.query('select 1 from delivery where due_at is not null limit 1');
        if (rowCount === 0) return;
        await pause(5);
      }
    },
    /** Throws unless rows, attempts and audit records are as many as expected, all delivered. */
    async check(deliveries, attempts = deliveries) {
      const { rows } = await pool.query(
        `select (select count(*) from delivery where state = 'delivered')::int as delivered,
                (select count(*) from delivery)::int as deliveries,
                (select count(*) from attempt where outcome is not null)::int as attempts,
                (select count(*) from attempt)::int as opened,
                (select count(*) from audit_record)::int as records,
                (select count(*) from trail)::int as trail`,
      );
      const expected = {
        delivered: deliveries,
        deliveries,
        attempts,
        opened: attempts,
        records: deliveries,
        trail: deliveries + attempts,
      };
      if (JSON.stringify(rows[0]) !== JSON.stringify(expected)) {
        throw new Error(`expected ${JSON.stringify(expected)}, found ${JSON.stringify(rows[0])}`);
      }
      return rows[0];
    },
    async close() {
      await Promise.all([...children].map((c) => c.stop()));
      await stopParts();
      await deleteObjects(config.broker, folder);
      forget();
      await database.close();
    },
  };
}

async function deleteObjects(broker, folder) {
  const { topologyOf } = await importProduct('broker/topology.js', folder);
  const { withConnection } = await importProduct('broker/connection.js', folder);
  const topology = topologyOf(broker.prefix);
  await withConnection(broker, 'bench', async (connection) => {
    const channel = await connection.createChannel();
    for (const { name } of topology.queues) await channel.deleteQueue(name);
    for (const { name } of topology.exchanges) await channel.deleteExchange(name);
    await channel.close();
  });
  const { createManagement } = await importProduct('broker/management.js', folder);
  const management = createManagement(broker);
  for (const { name } of topology.policies) await management?.deletePolicy?.(name);
}
