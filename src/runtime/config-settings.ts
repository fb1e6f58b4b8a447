import { KILL_POINT_FORM } from './kill-point.ts';

/** The environments there is a file for in `config`. */
export const ENVIRONMENTS = ['development', 'test', 'staging', 'production'] as const;

/** The name of an environment. */
export type Environment = (typeof ENVIRONMENTS)[number];

/** The values that are configured, by key; `null` means unset. */
export type Values = Readonly<Record<string, unknown>>;

/** The variable that names the environment. */
export const ENVIRONMENT_VARIABLE = 'DUEPOST_ENV';

/** Variables of the scripts and the compose file beside this program; it sees them but has no use for them. */
export const FOREIGN_VARIABLES = [
  'DUEPOST_NO_INSTALL',
  'DUEPOST_POSTGRES_PORT',
  'DUEPOST_AMQP_PORT',
  'DUEPOST_MANAGEMENT_PORT',
  'DUEPOST_PROMETHEUS_PORT',
  'DUEPOST_GRAFANA_PORT',
] as const;

/** What a value must look like. */
export type Shape =
  | { readonly format: 'whole'; readonly min: number; readonly max: number }
  | { readonly format: 'share' }
  | { readonly format: 'choice'; readonly among: readonly string[] }
  | { readonly format: 'flag' }
  | { readonly format: 'address'; readonly schemes: readonly string[] }
  | { readonly format: 'key' }
  | { readonly format: 'key-list' }
  | { readonly format: 'cidr-list' }
  | { readonly format: 'signing-key' }
  | { readonly format: 'text'; readonly pattern: RegExp; readonly example: string };

/** One thing that can be configured. */
export type Setting = Shape & {
  readonly env: string;
  readonly doc: string;
  /** Unset is fine: the program has an answer of its own, which `doc` names. */
  readonly optional?: true;
  /** Comes from the environment or a file of its own, never from a configuration file, and is never shown. */
  readonly secret?: true;
};

const HOUR_MS = 3_600_000;

/** Everything that can be configured, by its key in a configuration file. */
export const SETTINGS: Readonly<Record<string, Setting>> = {
  'database.url': {
    env: 'DUEPOST_DATABASE_URL',
    ...address('postgres', 'postgresql'),
    doc: 'PostgreSQL. Required by everything that works with deliveries.',
    optional: true,
  },
  'database.poolSize': {
    env: 'DUEPOST_DATABASE_POOL_SIZE',
    ...whole(1, 100),
    doc: 'Connections of each role in a process; for its locks the reconciler takes 5 more, and a command 1. A process with all roles takes four times this and 5.',
  },
  'database.statementTimeoutMs': {
    env: 'DUEPOST_DATABASE_STATEMENT_TIMEOUT_MS',
    ...whole(100, HOUR_MS),
    doc: 'The longest a statement may take.',
  },
  'broker.url': {
    env: 'DUEPOST_AMQP_URL',
    ...address('amqp', 'amqps'),
    doc: 'RabbitMQ. Required by everything that works with deliveries.',
    optional: true,
  },
  'broker.managementUrl': {
    env: 'DUEPOST_MANAGEMENT_URL',
    ...address('http', 'https'),
    doc: "RabbitMQ's management API; unset, it is not used.",
    optional: true,
  },
  'broker.prefix': {
    env: 'DUEPOST_BROKER_PREFIX',
    ...text(/^(?!amq\b)[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/, 'duepost'),
    doc: 'How the names of all exchanges and queues begin.',
  },
  'broker.heartbeatSeconds': {
    env: 'DUEPOST_BROKER_HEARTBEAT_SECONDS',
    ...whole(1, 600),
    doc: 'A connection that is silent for twice as long counts as lost.',
  },
  'broker.confirmTimeoutMs': {
    env: 'DUEPOST_BROKER_CONFIRM_TIMEOUT_MS',
    ...whole(100, HOUR_MS),
    doc: 'How long to wait until the broker has confirmed a message.',
  },
  'broker.maxUnconfirmed': {
    env: 'DUEPOST_BROKER_MAX_UNCONFIRMED',
    ...whole(1, 100_000),
    doc: 'Messages that may wait for their confirmation.',
  },
  'http.host': {
    env: 'DUEPOST_HTTP_HOST',
    ...text(/^[A-Za-z0-9._:%-]+$/, '127.0.0.1'),
    doc: 'The address every process serves HTTP on.',
  },
  'http.port': { env: 'DUEPOST_HTTP_PORT', ...whole(0, 65_535), doc: '0 takes any free port and prints it.' },
  masterKey: {
    env: 'DUEPOST_MASTER_KEY',
    format: 'key',
    doc: 'Encrypts the secrets of endpoints: base64 of 32 bytes. Required in staging and production; elsewhere a development key is used if unset.',
    optional: true,
    secret: true,
  },
  previousMasterKeys: {
    env: 'DUEPOST_MASTER_KEY_PREVIOUS',
    format: 'key-list',
    doc: 'Keys that still decrypt while the master key is being changed, separated by commas.',
    optional: true,
    secret: true,
  },
  'egress.client': {
    env: 'DUEPOST_EGRESS_CLIENT',
    format: 'choice',
    among: ['node-fetch', 'undici'],
    doc: 'What calls endpoints.',
  },
  'egress.timeoutMs': {
    env: 'DUEPOST_EGRESS_TIMEOUT_MS',
    ...whole(100, 120_000),
    doc: 'The longest a call may take in all.',
  },
  'egress.allow': {
    env: 'DUEPOST_EGRESS_ALLOW',
    format: 'cidr-list',
    doc: 'Networks that may be called although they are not public, as CIDRs separated by commas.',
  },
  'egress.allowHttp': {
    env: 'DUEPOST_EGRESS_ALLOW_HTTP',
    format: 'flag',
    doc: 'Allows plain `http://` endpoints.',
  },
  'claim.leaseMs': {
    env: 'DUEPOST_CLAIM_LEASE_MS',
    ...whole(2_100, HOUR_MS),
    doc: 'How long a claim holds: at least `egress.timeoutMs` + 2000; if unset, `egress.timeoutMs` + 5000.',
    optional: true,
  },
  'worker.prefetch': {
    env: 'DUEPOST_WORKER_PREFETCH',
    ...whole(1, 10_000),
    doc: 'Wake-ups a worker holds at a time.',
  },
  'worker.maxPerEndpoint': {
    env: 'DUEPOST_WORKER_MAX_PER_ENDPOINT',
    ...whole(1, 10_000),
    doc: "Calls in flight per endpoint and worker; an endpoint's own `max_in_flight` wins.",
  },
  'limits.maxPayloadBytes': {
    env: 'DUEPOST_MAX_PAYLOAD_BYTES',
    ...whole(1, 64 * 1_048_576),
    doc: 'The largest payload that is accepted.',
  },
  'reconciler.intervalMs': {
    env: 'DUEPOST_RECONCILER_INTERVAL_MS',
    ...whole(10, HOUR_MS),
    doc: 'The pause between two searches for what is due and has no message.',
  },
  'reconciler.graceMs': {
    env: 'DUEPOST_RECONCILER_GRACE_MS',
    ...whole(0, HOUR_MS),
    doc: 'How long a delivery may be overdue before it is announced again.',
  },
  horizonMs: {
    env: 'DUEPOST_HORIZON_MS',
    ...whole(1_000, HOUR_MS),
    doc: 'How far ahead wake-ups are handed to the broker: at least 120000, except in `test`.',
  },
  'feeder.intervalMs': {
    env: 'DUEPOST_FEEDER_INTERVAL_MS',
    ...whole(10, HOUR_MS),
    doc: 'The pause between two searches for what comes within the horizon.',
  },
  shutdownMs: {
    env: 'DUEPOST_SHUTDOWN_MS',
    ...whole(0, HOUR_MS),
    doc: 'How long work in hand may take to finish after SIGTERM.',
  },
  'log.level': {
    env: 'DUEPOST_LOG_LEVEL',
    format: 'choice',
    among: ['error', 'warn', 'info', 'debug'],
    doc: 'What is logged: this and what is more severe.',
  },
  'log.format': {
    env: 'DUEPOST_LOG_FORMAT',
    format: 'choice',
    among: ['json', 'human'],
    doc: 'How it is logged, on stderr.',
  },
  calendarsDir: {
    env: 'DUEPOST_CALENDARS_DIR',
    ...text(/^.+$/, './calendars'),
    doc: 'The folder of calendar files; if unset, `config/calendars` of the package.',
    optional: true,
  },
  'tz.minimumVersion': {
    env: 'DUEPOST_TZ_MINIMUM_VERSION',
    ...text(/^\d{4}[a-z]$/, '2025b'),
    doc: 'The oldest time zone data that is accepted.',
  },
  'sealing.privateKey': {
    env: 'DUEPOST_SEALING_KEY',
    format: 'signing-key',
    doc: 'Signs the evidence: Ed25519 in PEM (PKCS#8). Unset, it is not sealed.',
    optional: true,
    secret: true,
  },
  'sealing.intervalMs': {
    env: 'DUEPOST_SEALING_INTERVAL_MS',
    ...whole(10, 24 * HOUR_MS),
    doc: 'The pause between two seals.',
  },
  'retention.reminderYears': {
    env: 'DUEPOST_RETENTION_REMINDER_YEARS',
    ...whole(1, 100),
    doc: 'How long evidence of reminders is kept after they ended.',
  },
  'retention.eventDays': {
    env: 'DUEPOST_RETENTION_EVENT_DAYS',
    ...whole(1, 36_500),
    doc: 'How long evidence of events is kept after they ended.',
  },
  'shadow.all': {
    env: 'DUEPOST_SHADOW_ALL',
    format: 'flag',
    doc: 'Treats every endpoint as one in shadow mode.',
  },
  'api.rateLimitPerMinute': {
    env: 'DUEPOST_API_RATE_LIMIT_PER_MINUTE',
    ...whole(0, 10_000_000),
    doc: 'Requests per minute and API key; 0 is no limit.',
  },
  'telemetry.otlpEndpoint': {
    env: 'DUEPOST_TELEMETRY_OTLP_ENDPOINT',
    ...address('http', 'https'),
    doc: 'An OTLP collector (HTTP), such as `http://127.0.0.1:4318`: metrics are sent there. Unset, nothing is.',
    optional: true,
  },
  'telemetry.traces': {
    env: 'DUEPOST_TELEMETRY_TRACES',
    format: 'choice',
    among: ['off', 'otlp'],
    doc: 'Whether traces are made and sent to `telemetry.otlpEndpoint`.',
  },
  'telemetry.sampleRatio': {
    env: 'DUEPOST_TELEMETRY_SAMPLE_RATIO',
    format: 'share',
    doc: 'The share of traces that is kept, of those whose caller has not decided.',
  },
  'telemetry.traceparent': {
    env: 'DUEPOST_TELEMETRY_TRACEPARENT',
    format: 'flag',
    doc: 'Sends the `traceparent` header to endpoints, where traces are made.',
  },
  killPoint: {
    env: 'DUEPOST_KILL_POINT',
    ...text(KILL_POINT_FORM, 'ack.due or ack.due:3'),
    doc: 'For drills and fault tests: the point at which the process kills itself, as `name` or `name:n` for the n-th passing; the names are in docs/faults.md. Refused in `staging` and `production`.',
    optional: true,
  },
};

/** Whether the value can also come from a file that a variable names (`…_FILE`): secrets, and URLs, which hold passwords. */
export function hasFileVariable(setting: Setting): boolean {
  return setting.secret === true || setting.format === 'address';
}

function whole(min: number, max: number) {
  return { format: 'whole', min, max } as const;
}

function address(...schemes: string[]) {
  return { format: 'address', schemes } as const;
}

function text(pattern: RegExp, example: string) {
  return { format: 'text', pattern, example } as const;
}
