import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../../src/runtime/build-info.ts';
import { loadCalendarSource, loadConfig } from '../../src/runtime/config.ts';
import { ENVIRONMENTS, hasFileVariable, SETTINGS, type Setting } from '../../src/runtime/config-settings.ts';
import { AMQP_URL, DATABASE_URL, leavesOf, SERVERS, useFolder } from './config-support.ts';

const MASTER_KEY = randomBytes(32);
const SEALING_KEY = generateKeyPairSync('ed25519')
  .privateKey.export({ type: 'pkcs8', format: 'pem' })
  .toString();
const folder = useFolder();

describe('the effective configuration', () => {
  it('has the defaults of the contract', () => {
    const config = loadConfig({
      env: { ...SERVERS, DUEPOST_ENV: 'production', DUEPOST_MASTER_KEY: MASTER_KEY.toString('base64') },
    });
    expect(config).toEqual({
      env: 'production',
      database: { url: DATABASE_URL, poolSize: 8, statementTimeoutMs: 10_000 },
      broker: {
        url: AMQP_URL,
        prefix: 'duepost',
        heartbeatSeconds: 10,
        confirmTimeoutMs: 15_000,
        maxUnconfirmed: 500,
      },
      http: { host: '127.0.0.1', port: 8080 },
      masterKey: MASTER_KEY,
      previousMasterKeys: [],
      egress: { client: 'node-fetch', timeoutMs: 10_000, allow: [], allowHttp: false },
      claim: { leaseMs: 15_000 },
      worker: { prefetch: 500, maxPerEndpoint: 32 },
      limits: { maxPayloadBytes: 1_048_576 },
      reconciler: { intervalMs: 5_000, graceMs: 15_000 },
      horizonMs: 900_000,
      feeder: { intervalMs: 60_000 },
      shutdownMs: 30_000,
      log: { level: 'info', format: 'json' },
      calendarsDir: join(packageRoot, 'config/calendars'),
      tz: { minimumVersion: '2025b' },
      sealing: { intervalMs: 60_000 },
      retention: { reminderYears: 10, eventDays: 365 },
      shadow: { all: false },
      api: { rateLimitPerMinute: 60_000 },
      telemetry: { traces: 'off', sampleRatio: 1, traceparent: true },
    });
  });

  it('takes every setting from its variable', () => {
    const config = loadConfig({
      env: {
        ...SERVERS,
        DUEPOST_ENV: 'test',
        DUEPOST_DATABASE_POOL_SIZE: '4',
        DUEPOST_DATABASE_STATEMENT_TIMEOUT_MS: '2000',
        DUEPOST_MANAGEMENT_URL: 'http://guest:guest@127.0.0.1:15672',
        DUEPOST_BROKER_PREFIX: 'team.a',
        DUEPOST_BROKER_HEARTBEAT_SECONDS: '5',
        DUEPOST_BROKER_CONFIRM_TIMEOUT_MS: '900',
        DUEPOST_BROKER_MAX_UNCONFIRMED: '50',
        DUEPOST_HTTP_HOST: '0.0.0.0',
        DUEPOST_HTTP_PORT: '0',
        DUEPOST_MASTER_KEY: MASTER_KEY.toString('base64'),
        DUEPOST_MASTER_KEY_PREVIOUS: `${Buffer.alloc(32, 1).toString('base64')}, ${Buffer.alloc(32, 2).toString('base64')}`,
        DUEPOST_EGRESS_CLIENT: 'undici',
        DUEPOST_EGRESS_TIMEOUT_MS: '1000',
        DUEPOST_EGRESS_ALLOW: '10.20.0.0/16, fd00::/8',
        DUEPOST_EGRESS_ALLOW_HTTP: 'false',
        DUEPOST_CLAIM_LEASE_MS: '3000',
        DUEPOST_WORKER_PREFETCH: '7',
        DUEPOST_WORKER_MAX_PER_ENDPOINT: '3',
        DUEPOST_MAX_PAYLOAD_BYTES: '1000',
        DUEPOST_RECONCILER_INTERVAL_MS: '50',
        DUEPOST_RECONCILER_GRACE_MS: '0',
        DUEPOST_HORIZON_MS: '1000',
        DUEPOST_FEEDER_INTERVAL_MS: '100',
        DUEPOST_SHUTDOWN_MS: '1',
        DUEPOST_LOG_LEVEL: 'debug',
        DUEPOST_LOG_FORMAT: 'json',
        DUEPOST_CALENDARS_DIR: folder.path(),
        DUEPOST_TZ_MINIMUM_VERSION: '2026a',
        DUEPOST_SEALING_KEY: SEALING_KEY,
        DUEPOST_SEALING_INTERVAL_MS: '500',
        DUEPOST_RETENTION_REMINDER_YEARS: '7',
        DUEPOST_RETENTION_EVENT_DAYS: '30',
        DUEPOST_SHADOW_ALL: '1',
        DUEPOST_API_RATE_LIMIT_PER_MINUTE: '0',
        DUEPOST_TELEMETRY_OTLP_ENDPOINT: 'http://127.0.0.1:4318',
        DUEPOST_TELEMETRY_TRACES: 'otlp',
        DUEPOST_TELEMETRY_SAMPLE_RATIO: '0.25',
        DUEPOST_TELEMETRY_TRACEPARENT: 'true',
      },
    });
    expect(config).toEqual({
      env: 'test',
      database: { url: DATABASE_URL, poolSize: 4, statementTimeoutMs: 2_000 },
      broker: {
        url: AMQP_URL,
        managementUrl: 'http://guest:guest@127.0.0.1:15672',
        prefix: 'team.a',
        heartbeatSeconds: 5,
        confirmTimeoutMs: 900,
        maxUnconfirmed: 50,
      },
      http: { host: '0.0.0.0', port: 0 },
      masterKey: MASTER_KEY,
      previousMasterKeys: [Buffer.alloc(32, 1), Buffer.alloc(32, 2)],
      egress: { client: 'undici', timeoutMs: 1_000, allow: ['10.20.0.0/16', 'fd00::/8'], allowHttp: false },
      claim: { leaseMs: 3_000 },
      worker: { prefetch: 7, maxPerEndpoint: 3 },
      limits: { maxPayloadBytes: 1_000 },
      reconciler: { intervalMs: 50, graceMs: 0 },
      horizonMs: 1_000,
      feeder: { intervalMs: 100 },
      shutdownMs: 1,
      log: { level: 'debug', format: 'json' },
      calendarsDir: folder.path(),
      tz: { minimumVersion: '2026a' },
      sealing: { privateKey: SEALING_KEY.trim(), intervalMs: 500 },
      retention: { reminderYears: 7, eventDays: 30 },
      shadow: { all: true },
      api: { rateLimitPerMinute: 0 },
      telemetry: {
        otlpEndpoint: 'http://127.0.0.1:4318',
        traces: 'otlp',
        sampleRatio: 0.25,
        traceparent: true,
      },
    });
  });

  it('reads a further file above the shipped ones and below the variables', () => {
    const file = folder.write('more.json', '{"http":{"port":9000,"host":"::1"},"egress":{"timeoutMs":3000}}');
    const config = loadConfig({ env: { ...SERVERS, DUEPOST_HTTP_PORT: '9100' }, file });
    expect(config.http).toEqual({ host: '::1', port: 9100 });
    expect(config.claim.leaseMs).toBe(8_000);
    expect(config.worker.prefetch).toBe(500);
  });

  it('allows loopback and plain HTTP in development and test only', () => {
    const key = MASTER_KEY.toString('base64');
    const allowed = ENVIRONMENTS.map((name) => {
      const { egress } = loadConfig({ env: { ...SERVERS, DUEPOST_ENV: name, DUEPOST_MASTER_KEY: key } });
      return [name, egress.allow.join(), egress.allowHttp];
    });
    expect(allowed).toEqual([
      ['development', '127.0.0.0/8,::1/128', true],
      ['test', '127.0.0.0/8,::1/128', true],
      ['staging', '', false],
      ['production', '', false],
    ]);
  });

  it('is that of development when nobody names an environment', () => {
    expect(loadConfig({ env: SERVERS }).env).toBe('development');
  });

  it('lets an empty variable mean unset, but an empty list mean none', () => {
    const config = loadConfig({
      env: { ...SERVERS, DUEPOST_HTTP_PORT: '', DUEPOST_MASTER_KEY: '', DUEPOST_EGRESS_ALLOW: '' },
    });
    expect(config.http.port).toBe(8080);
    expect(config.masterKey).toHaveLength(32);
    expect(config.egress.allow).toEqual([]);
  });

  it('has defaults for every setting that is not optional, and nothing else, in default.json', () => {
    const defaults: Record<string, unknown> = JSON.parse(
      readFileSync(join(packageRoot, 'config/default.json'), 'utf8'),
    );
    const required = Object.keys(SETTINGS).filter((name) => SETTINGS[name]?.optional !== true);
    expect(leavesOf(defaults).sort()).toEqual(required.sort());
  });
});

describe('calendar files', () => {
  it('are found by code, read once and undefined when there is none', () => {
    const path = folder.write('DE-BY.json', '{"time_zone":"Europe/Berlin"}');
    const find = loadCalendarSource(folder.path());
    expect(find('DE-BY')).toEqual({ time_zone: 'Europe/Berlin' });
    writeFileSync(path, '{"time_zone":"Europe/Paris"}');
    expect(find('DE-BY')).toEqual({ time_zone: 'Europe/Berlin' });
    expect(find('FR')).toBeUndefined();
    expect(loadCalendarSource('/nowhere')('DE-BY')).toBeUndefined();
  });

  it('are never outside of their folder', () => {
    const find = loadCalendarSource(join(packageRoot, 'config/calendars'));
    for (const code of [
      '../default',
      './../default',
      '../../package',
      '..%2Fdefault',
      join(folder.path(), 'DE-BY'),
      '',
      '\0',
    ]) {
      expect(find(code)).toBeUndefined();
    }
  });

  it('say what is wrong with them', () => {
    folder.write('AT.json', '{"time_zone":');
    folder.write('CH.json', '{"a":1,"a":2}');
    const find = loadCalendarSource(folder.path());
    expect(() => find('AT')).toThrow(/^the calendar AT\.json is not valid JSON/);
    expect(() => find('CH')).toThrow('the calendar CH.json has the key a twice');
  });
});

describe('docs/configuration.md', () => {
  it('lists every key with its variable, default and meaning', () => {
    const text = readFileSync(join(packageRoot, 'docs/configuration.md'), 'utf8');
    const rows = text.split('\n').filter((line) => line.startsWith('| `'));
    const defaults: Record<string, unknown> = JSON.parse(
      readFileSync(join(packageRoot, 'config/default.json'), 'utf8'),
    );
    expect(rows).toEqual(
      Object.entries(SETTINGS).map(([name, setting]) => documentedRow(name, setting, defaults)),
    );
  });
});

function documentedRow(name: string, setting: Setting, defaults: Record<string, unknown>): string {
  const [section, key] = name.split('.') as [string, string | undefined];
  const value =
    key === undefined ? defaults[section] : (defaults[section] as Record<string, unknown> | undefined)?.[key];
  const shown =
    value === undefined ? '' : Array.isArray(value) && value.length === 0 ? 'none' : `\`${value as string}\``;
  const variable = `\`${setting.env}\`${hasFileVariable(setting) ? ' (`_FILE`)' : ''}`;
  return `| \`${name}\` | ${variable} | ${shown} | ${allowed(setting)}${setting.doc} |`;
}

function allowed(setting: Setting): string {
  if (setting.format === 'whole') return `${setting.min} to ${setting.max}. `;
  if (setting.format === 'share') return '0 to 1. ';
  return setting.format === 'choice' ? `${setting.among.map((one) => `\`${one}\``).join(', ')}. ` : '';
}
