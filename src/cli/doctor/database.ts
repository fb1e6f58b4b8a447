import { createSecretBox } from '../../pipeline/secrets.ts';
import { LOCKS } from '../../roles/reconciler.ts';
import { ROLES } from '../../roles/role.ts';
import type { Config } from '../../runtime/config.ts';
import { reasonOf } from '../../runtime/outage.ts';
import { listExpiringTls } from '../../store/endpoint-tls.ts';
import { listEndpoints } from '../../store/endpoints.ts';
import { listEndpointsForCall } from '../../store/endpoints-for-call.ts';
import { findMigrationStatus } from '../../store/migrate.ts';
import type { Pool } from '../../store/pool.ts';
import {
  findDatabaseTime,
  findServerFacts,
  hasNextPartitions,
  listMissingPrivileges,
  type ServerFacts,
} from '../../store/watch/diagnosis.ts';
import { type Finding, ok, skipped, warning, wrong } from './finding.ts';

const OLDEST_VERSION = 150_000;
/** Signatures are good for minutes, but logs and evidence are compared by the second. */
const MOST_OFFSET_MS = 2_000;
const SAMPLES = 5;
const SECRETS_TRIED = 200;
const CERTIFICATE_DAYS = 30;
const MEND_RIGHTS =
  "run select grant_to_application('<this user>') as the owner of the tables, or connect as that owner";
const DEPENDENT = ['database version', 'migrations', 'clock', 'database rights', 'connections', 'master key'];

/** Everything about the database. */
export async function checkDatabase(pool: Pool, config: Config): Promise<Finding[]> {
  let facts: ServerFacts;
  try {
    facts = await findServerFacts(pool);
  } catch (error) {
    return [
      wrong('database', reasonOf(error), mendConnection(error)),
      ...DEPENDENT.map((check) => skipped(check, 'no database')),
    ];
  }
  const migrated = await checkMigrations(pool);
  return [
    facts.isReadOnly
      ? wrong('database', 'it refuses writes', 'name the primary in DUEPOST_DATABASE_URL, not a standby')
      : ok('database', 'reachable'),
    checkVersion(facts),
    migrated,
    await checkClock(pool),
    ...(await checkRights(pool)),
    checkConnections(facts, config),
    ...(migrated.status === 'ok'
      ? [await checkPartitions(pool), await checkMasterKey(pool, config), await checkClientCertificates(pool)]
      : [skipped('master key', 'the migrations come first')]),
  ];
}

function mendConnection(error: unknown): string {
  const code = String((error as { code?: unknown }).code);
  if (code === '3D000')
    return 'make it (createdb), then duepost migrate; or name another in DUEPOST_DATABASE_URL';
  if (code.startsWith('28')) return 'name a user and password in DUEPOST_DATABASE_URL that PostgreSQL takes';
  return 'start PostgreSQL, or set DUEPOST_DATABASE_URL to where it is';
}

function checkVersion({ version, versionNumber }: ServerFacts): Finding {
  const check = 'database version';
  return versionNumber >= OLDEST_VERSION
    ? ok(check, `PostgreSQL ${version}`)
    : wrong(check, `PostgreSQL ${version} is too old`, 'use PostgreSQL 15 or newer');
}

async function checkMigrations(pool: Pool): Promise<Finding> {
  const check = 'migrations';
  let status: Awaited<ReturnType<typeof findMigrationStatus>>;
  try {
    status = await findMigrationStatus(pool);
  } catch (error) {
    if ((error as { code?: unknown }).code !== '42501') throw error;
    return wrong(check, reasonOf(error), MEND_RIGHTS);
  }
  const { applied, pending, unknown } = status;
  if (unknown.length > 0) {
    const detail = `the database was migrated by a newer version (${unknown.join(', ')})`;
    return wrong(check, detail, 'install that version of duepost, or a newer one');
  }
  if (pending.length === 0) return ok(check, `all ${applied.length} are applied`);
  return wrong(check, `${pending.length} are pending: ${pending.join(', ')}`, 'run duepost migrate');
}

/** The database's clock decides, and stamps signatures; this host's judges certificates and stands in logs. */
async function checkClock(pool: Pool): Promise<Finding> {
  const check = 'clock';
  let best = { offsetMs: 0, roundTripMs: Number.POSITIVE_INFINITY };
  for (let i = 0; i < SAMPLES; i += 1) {
    const before = Date.now();
    const at = await findDatabaseTime(pool);
    const after = Date.now();
    const roundTripMs = after - before;
    // The quickest answer says it best.
    if (roundTripMs < best.roundTripMs) {
      best = { offsetMs: (before + after) / 2 - at.getTime(), roundTripMs };
    }
  }
  const offsetMs = Math.round(best.offsetMs);
  const detail = `this host is ${Math.abs(offsetMs)} ms ${offsetMs < 0 ? 'behind' : 'ahead of'} the database`;
  return Math.abs(offsetMs) <= MOST_OFFSET_MS + best.roundTripMs / 2
    ? ok(check, detail)
    : wrong(
        check,
        detail,
        'let both follow the same time servers (NTP): certificates are judged by the clock of this host, and logs compared by it',
      );
}

async function checkRights(pool: Pool): Promise<Finding[]> {
  const check = 'database rights';
  const missing = await listMissingPrivileges(pool);
  if (missing.length === 0) return [ok(check, 'read and write where they must be')];
  return [wrong(check, `this user lacks ${missing.join(', ')}`, MEND_RIGHTS)];
}

/** Whether another process finds enough, as one does that takes over from its predecessor. */
function checkConnections({ maxConnections, connections }: ServerFacts, config: Config): Finding {
  const check = 'connections';
  const free = Math.max(0, maxConnections - connections);
  const { poolSize } = config.database;
  const needed = ROLES.length * poolSize + LOCKS;
  const detail = `a process with all roles takes up to ${needed}, ${poolSize} for each and ${LOCKS} for locks; the server has ${free} of ${maxConnections} free`;
  return free >= needed
    ? ok(check, detail)
    : warning(check, detail, 'raise max_connections, or lower DUEPOST_DATABASE_POOL_SIZE');
}

async function checkPartitions(pool: Pool): Promise<Finding> {
  const check = 'partitions';
  return (await hasNextPartitions(pool))
    ? ok(check, 'those of next month are there')
    : wrong(
        check,
        'those of next month are missing',
        'run duepost start --roles reconciler, which makes them',
      );
}

async function checkMasterKey(pool: Pool, config: Config): Promise<Finding> {
  const check = 'master key';
  const box = createSecretBox(config.masterKey, config.previousMasterKeys);
  const endpoints = await listEndpoints(pool, { after: '', limit: SECRETS_TRIED });
  const withSecrets = await listEndpointsForCall(
    pool,
    endpoints.map((e) => e.endpointId),
  );
  const closed = withSecrets.filter(({ endpointId, secrets, storedTls: { key } }) =>
    [...secrets.map((s) => s.ciphertext), ...(key === undefined ? [] : [key])].some(
      (ciphertext) => !opens(() => box.open(endpointId, ciphertext)),
    ),
  );
  if (closed.length === 0) return ok(check, `opens the secrets of ${withSecrets.length} endpoints`);
  const names = closed.map((e) => e.name).slice(0, 5);
  return wrong(
    check,
    `does not open secrets of ${closed.length} of ${withSecrets.length} endpoints (${names.join(', ')}${closed.length > names.length ? ', …' : ''})`,
    'set DUEPOST_MASTER_KEY_PREVIOUS to the key they were made under, or rotate their secrets and give their client keys again',
  );
}

async function checkClientCertificates(pool: Pool): Promise<Finding> {
  const check = 'client certificates';
  const expiring = await listExpiringTls(pool, CERTIFICATE_DAYS);
  if (expiring.length === 0) return ok(check, `none expires within ${CERTIFICATE_DAYS} days`);
  const named = expiring.slice(0, 5).map((e) => `${e.name} on ${e.expiresAt.toISOString().slice(0, 10)}`);
  return warning(
    check,
    `${expiring.length} expire within ${CERTIFICATE_DAYS} days (${named.join(', ')}${expiring.length > named.length ? ', …' : ''})`,
    'have them renewed, then duepost endpoint patch <endpoint> --client-certificate FILE --client-key FILE',
  );
}

function opens(open: () => Buffer): boolean {
  try {
    open();
    return true;
  } catch {
    return false;
  }
}
