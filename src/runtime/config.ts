import { readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import convict from 'convict';
import { packageRoot } from './build-info.ts';
import { checkTogether, DEVELOPMENT_MASTER_KEY, isReal, type Need } from './config-checks.ts';
import { addFormats } from './config-formats.ts';
import {
  ENVIRONMENT_VARIABLE,
  ENVIRONMENTS,
  type Environment,
  SETTINGS,
  type Setting,
  type Values,
} from './config-settings.ts';
import { type Complaints, didYouMean, readConfigFile, readVariables } from './config-sources.ts';
import { readJsonFile } from './json-file.ts';
import { scrub } from './scrub.ts';

const USUAL_LEASE_MARGIN_MS = 5_000;

/** The effective configuration. */
export interface Config {
  readonly env: Environment;
  readonly database: { readonly url: string; readonly poolSize: number; readonly statementTimeoutMs: number };
  readonly broker: {
    readonly url: string;
    /** Undefined: the management API is not used. */
    readonly managementUrl?: string;
    readonly prefix: string;
    readonly heartbeatSeconds: number;
    readonly confirmTimeoutMs: number;
    readonly maxUnconfirmed: number;
  };
  readonly http: { readonly host: string; readonly port: number };
  /** 32 bytes; empty only when servers are not required and none was given. */
  readonly masterKey: Buffer;
  /** Keys that may still have encrypted something, while keys are rotated. */
  readonly previousMasterKeys: readonly Buffer[];
  readonly egress: {
    readonly client: 'node-fetch' | 'undici';
    readonly timeoutMs: number;
    /** CIDRs that may be called although they are not public. */
    readonly allow: readonly string[];
    readonly allowHttp: boolean;
  };
  readonly claim: { readonly leaseMs: number };
  readonly worker: { readonly prefetch: number; readonly maxPerEndpoint: number };
  readonly limits: { readonly maxPayloadBytes: number };
  readonly reconciler: { readonly intervalMs: number; readonly graceMs: number };
  readonly horizonMs: number;
  readonly feeder: { readonly intervalMs: number };
  readonly shutdownMs: number;
  readonly log: { readonly level: 'error' | 'warn' | 'info' | 'debug'; readonly format: 'json' | 'human' };
  readonly calendarsDir: string;
  /** The oldest time zone data that is accepted, such as `2025b`. */
  readonly tz: { readonly minimumVersion: string };
  readonly sealing: {
    /** Ed25519, PEM of PKCS#8; undefined: records are not sealed. */
    readonly privateKey?: string;
    readonly intervalMs: number;
  };
  readonly retention: { readonly reminderYears: number; readonly eventDays: number };
  readonly shadow: { readonly all: boolean };
  readonly api: { readonly rateLimitPerMinute: number };
  readonly telemetry: {
    /** Undefined: nothing is sent anywhere; `/metrics` is there all the same. */
    readonly otlpEndpoint?: string;
    readonly traces: 'off' | 'otlp';
    /** 0 to 1. */
    readonly sampleRatio: number;
    readonly traceparent: boolean;
  };
  /** Where the process kills itself, for drills and fault tests; undefined: nowhere. */
  readonly killPoint?: string;
}

/** Everything that is wrong with a configuration, one line each. */
export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

export type { Need };

const EVERYTHING: readonly Need[] = ['database', 'broker', 'masterKey'];

/** Where the configuration comes from. */
export interface LoadOptions {
  /** The variables; `process.env` if undefined. */
  readonly env?: NodeJS.ProcessEnv;
  /** One more configuration file, above the ones that are shipped and below the variables. */
  readonly file?: string;
  /** What must be given; all if undefined. What is not needed and not given is empty. */
  readonly needs?: readonly Need[];
  /** Finds the name that was probably meant by one that is not known; none is offered if undefined. */
  readonly findNearest?: Complaints['findNearest'];
}

/**
 * The configuration in force: `config/default.json`, then the file of the environment, then `file`, then variables.
 *
 * @throws ConfigError with every problem there is; no problem shows a secret
 */
export function loadConfig(options: LoadOptions = {}): Config {
  const variables = options.env ?? process.env;
  const problems: string[] = [];
  const complaints = { problems, findNearest: options.findNearest ?? (() => undefined) };
  const env = readEnvironmentName(variables, complaints);
  const values = readValues(env, { variables, file: options.file, complaints });
  checkTogether(env, values, { needs: options.needs ?? EVERYTHING, problems });
  if (problems.length > 0) throw new ConfigError(problems.map(scrub));
  return toConfig(env, values);
}

function readEnvironmentName(variables: NodeJS.ProcessEnv, complaints: Complaints): Environment {
  const name = variables[ENVIRONMENT_VARIABLE]?.trim() || 'development';
  const found = ENVIRONMENTS.find((known) => known === name);
  if (found !== undefined) return found;
  const hint = didYouMean(name, ENVIRONMENTS, complaints);
  complaints.problems.push(`${ENVIRONMENT_VARIABLE} must be one of ${ENVIRONMENTS.join(', ')}${hint}`);
  // The strictest, so that what else is wrong comes to light.
  return 'production';
}

function readValues(
  env: Environment,
  from: { variables: NodeJS.ProcessEnv; file: string | undefined; complaints: Complaints },
): Values {
  const { complaints } = from;
  addFormats();
  const store = convict<Record<string, unknown>>(convictSchema(), {
    env: readVariables(from.variables, complaints),
    args: [],
  });
  for (const name of ['default', env]) {
    const label = `config/${name}.json`;
    store.load(readConfigFile(join(packageRoot, label), label, complaints));
  }
  if (from.file !== undefined) {
    store.load(readConfigFile(resolve(from.file), `the configuration file ${from.file}`, complaints));
  }
  try {
    store.validate({ allowed: 'strict' });
  } catch (error) {
    complaints.problems.push(...(error as Error).message.split('\n').map(withVariable));
  }
  return flatten(store.getProperties());
}

/** Our settings as convict wants them: nested, and with `null` for what nobody has set. */
function convictSchema(): convict.Schema<Record<string, unknown>> {
  const schema: Record<string, Record<string, unknown>> = {};
  for (const [name, setting] of Object.entries(SETTINGS)) {
    const sensitive = setting.secret === true || setting.format === 'address';
    const node = { ...setting, default: null, nullable: true, sensitive };
    const [section, key] = name.split('.') as [string, string | undefined];
    if (key === undefined) schema[section] = node;
    else schema[section] = { ...schema[section], [key]: node };
  }
  return schema as convict.Schema<Record<string, unknown>>;
}

function flatten(properties: Record<string, unknown>): Values {
  const entries = Object.keys(SETTINGS).map((name) => {
    const [section, key] = name.split('.') as [string, string | undefined];
    const value = properties[section];
    return [name, key === undefined ? value : (value as Record<string, unknown>)[key]];
  });
  return Object.fromEntries(entries);
}

/** Convict's `key: what is wrong`, with the variable that people will look for. */
function withVariable(problem: string): string {
  const name = problem.slice(0, problem.indexOf(':'));
  const variable = SETTINGS[name]?.env;
  return variable === undefined ? problem : `${name} (${variable})${problem.slice(name.length + 1)}`;
}

function toConfig(env: Environment, values: Values): Config {
  // Every value has passed its format, so its type is known; what is `null` is optional.
  const read = <T>(name: string): T => values[name] as T;
  const text = (name: string): string => read<string | null>(name) ?? '';
  const masterKey = read<string | null>('masterKey') ?? (isReal(env) ? '' : DEVELOPMENT_MASTER_KEY);
  const timeoutMs = read<number>('egress.timeoutMs');
  const managementUrl = read<string | null>('broker.managementUrl');
  const privateKey = read<string | null>('sealing.privateKey');
  const otlpEndpoint = read<string | null>('telemetry.otlpEndpoint');
  const killPoint = read<string | null>('killPoint');
  return {
    env,
    database: {
      url: text('database.url'),
      poolSize: read('database.poolSize'),
      statementTimeoutMs: read('database.statementTimeoutMs'),
    },
    broker: {
      url: text('broker.url'),
      ...(managementUrl !== null && { managementUrl }),
      prefix: read('broker.prefix'),
      heartbeatSeconds: read('broker.heartbeatSeconds'),
      confirmTimeoutMs: read('broker.confirmTimeoutMs'),
      maxUnconfirmed: read('broker.maxUnconfirmed'),
    },
    http: { host: read('http.host'), port: read('http.port') },
    masterKey: Buffer.from(masterKey, 'base64'),
    previousMasterKeys: (read<string[] | null>('previousMasterKeys') ?? []).map((key) =>
      Buffer.from(key, 'base64'),
    ),
    egress: {
      client: read('egress.client'),
      timeoutMs,
      allow: read('egress.allow'),
      allowHttp: read('egress.allowHttp'),
    },
    claim: { leaseMs: read<number | null>('claim.leaseMs') ?? timeoutMs + USUAL_LEASE_MARGIN_MS },
    worker: { prefetch: read('worker.prefetch'), maxPerEndpoint: read('worker.maxPerEndpoint') },
    limits: { maxPayloadBytes: read('limits.maxPayloadBytes') },
    reconciler: { intervalMs: read('reconciler.intervalMs'), graceMs: read('reconciler.graceMs') },
    horizonMs: read('horizonMs'),
    feeder: { intervalMs: read('feeder.intervalMs') },
    shutdownMs: read('shutdownMs'),
    log: { level: read('log.level'), format: read('log.format') },
    calendarsDir: resolve(read<string | null>('calendarsDir') ?? join(packageRoot, 'config/calendars')),
    tz: { minimumVersion: read('tz.minimumVersion') },
    sealing: { ...(privateKey !== null && { privateKey }), intervalMs: read('sealing.intervalMs') },
    retention: { reminderYears: read('retention.reminderYears'), eventDays: read('retention.eventDays') },
    shadow: { all: read('shadow.all') },
    api: { rateLimitPerMinute: read('api.rateLimitPerMinute') },
    telemetry: {
      ...(otlpEndpoint !== null && { otlpEndpoint }),
      traces: read('telemetry.traces'),
      sampleRatio: read('telemetry.sampleRatio'),
      traceparent: read('telemetry.traceparent'),
    },
    ...(killPoint !== null && { killPoint }),
  };
}

/** Every setting in force, by section, with secrets and the passwords in URLs masked; for `duepost config`. */
export function describeConfig(config: Config): Record<string, unknown> {
  const described: Record<string, unknown> = { env: config.env };
  for (const [name, setting] of Object.entries(SETTINGS)) {
    const [section, key] = name.split('.') as [string, string | undefined];
    const holder = key === undefined ? config : config[section as 'database'];
    const value = (holder as unknown as Record<string, unknown>)[key ?? section];
    const shown = show(value, setting);
    if (key === undefined) described[section] = shown;
    else described[section] = { ...(described[section] as object | undefined), [key]: shown };
  }
  return described;
}

function show(value: unknown, setting: Setting): unknown {
  if (value === undefined) return null;
  if (setting.secret === true) return (value as { length: number }).length === 0 ? null : '***';
  return setting.format === 'address' && typeof value === 'string' ? scrub(value) : value;
}

/**
 * Looks up calendar files: `<dir>/<code>.json`, read when first asked for and kept, so that a calendar does not change
 * while the process runs.
 *
 * The result is undefined for a code without a file. It compares the code with the names in the folder, so nothing
 * outside it is ever read. A folder that does not exist has no calendars.
 *
 * @throws Error from the look-up when the file is not valid JSON
 */
export function loadCalendarSource(dir: string): (code: string) => unknown {
  const names = new Set(statSync(dir, { throwIfNoEntry: false }) === undefined ? [] : readdirSync(dir));
  const calendars = new Map<string, unknown>();
  return (code) => {
    const name = `${code}.json`;
    if (!names.has(name)) return undefined;
    if (!calendars.has(code)) {
      const file = readJsonFile(join(dir, name));
      if (file.problem !== undefined) throw new Error(`the calendar ${name} ${file.problem}`);
      calendars.set(code, file.value);
    }
    return calendars.get(code);
  };
}
