import { createEventAcceptor, type EventAcceptor } from '../../src/pipeline/accept/events.ts';
import { createReminderAcceptor, type ReminderAcceptor } from '../../src/pipeline/accept/reminders.ts';
import type { EndpointOperator } from '../../src/pipeline/operate/endpoints.ts';
import { startRoles } from '../../src/roles/all.ts';
import { openCalendars, openEndpointOperator, openParts, type Parts } from '../../src/roles/parts.ts';
import type { Role } from '../../src/roles/role.ts';
import { type Config, loadConfig } from '../../src/runtime/config.ts';
import type { Log } from '../../src/runtime/log.ts';
import { inScope, type Stop } from '../../src/runtime/scope.ts';
import { openTestBroker, type TestBroker } from './broker.ts';
import { openTestDatabase, type TestDatabase } from './database.ts';
import { type RecordedLog, recordLog } from './recorded-log.ts';

/** The product on a database and a broker prefix of its own. */
export interface TestProduct {
  readonly config: Config;
  /** The variables that make a process of the command line use the same. */
  readonly env: Readonly<Record<string, string>>;
  readonly database: TestDatabase;
  readonly broker: TestBroker;
  readonly recorded: RecordedLog;
  readonly parts: Parts;
  readonly events: EventAcceptor;
  readonly reminders: ReminderAcceptor;
  readonly endpoints: EndpointOperator;
  /** Starts further roles; `config` changes what they run with. */
  start(roles: readonly Role[], config?: Config): Promise<Stop>;
  /** Stops every role and removes everything. */
  close(): Promise<void>;
}

/** Opens the product for a test and starts the given roles in this process. */
export async function openTestProduct(
  options: { readonly roles?: readonly Role[]; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<TestProduct> {
  const database = await openTestDatabase();
  const broker = await openTestBroker();
  const env = {
    DUEPOST_ENV: 'test',
    DUEPOST_DATABASE_URL: database.url,
    DUEPOST_AMQP_URL: broker.config.url,
    ...(broker.config.managementUrl === undefined
      ? {}
      : { DUEPOST_MANAGEMENT_URL: broker.config.managementUrl }),
    DUEPOST_BROKER_PREFIX: broker.config.prefix,
    DUEPOST_HTTP_PORT: '0',
    ...options.env,
  };
  const config = loadConfig({ env });
  const recorded = recordLog();
  const stops: Stop[] = [];
  const start = async (
    roles: readonly Role[],
    withConfig = config,
    log: Log = recorded.log,
  ): Promise<Stop> => {
    const stop = await startRoles(roles, withConfig, log);
    stops.push(stop);
    return stop;
  };
  let opened: Pick<TestProduct, 'parts' | 'events' | 'reminders' | 'endpoints'> | undefined;
  const stopParts = await inScope(async (scope) => {
    const parts = await openParts(scope, config, recorded.log);
    const common = { db: parts.pool, announcer: parts.announcer, timeoutMs: config.egress.timeoutMs };
    opened = {
      parts,
      events: scope.own(createEventAcceptor(common), (a) => a.close()),
      reminders: scope.own(createReminderAcceptor({ ...common, calendars: openCalendars(config) }), (a) =>
        a.close(),
      ),
      endpoints: openEndpointOperator(parts, config),
    };
  });
  if (opened === undefined) throw new Error('the parts were not opened');
  await start(options.roles ?? []);
  return {
    ...opened,
    config,
    env,
    database,
    broker,
    recorded,
    start,
    async close() {
      await Promise.all(stops.map((stop) => stop()));
      await stopParts();
      await database.close();
      await broker.close();
    },
  };
}
