import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findNearest } from '../../src/domain/nearest.ts';
import { packageRoot } from '../../src/runtime/build-info.ts';
import { ConfigError, describeConfig, loadCalendarSource, loadConfig } from '../../src/runtime/config.ts';
import { ENVIRONMENTS, hasFileVariable, SETTINGS, type Setting } from '../../src/runtime/config-settings.ts';

const DATABASE_URL = 'postgres://duepost@127.0.0.1:5432/duepost';
const AMQP_URL = 'amqp://guest:guest@127.0.0.1:5672';
const SERVERS = { DUEPOST_DATABASE_URL: DATABASE_URL, DUEPOST_AMQP_URL: AMQP_URL };
const MASTER_KEY = randomBytes(32);
const SEALING_KEY = generateKeyPairSync('ed25519')
  .privateKey.export({ type: 'pkcs8', format: 'pem' })
  .toString();

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'duepost-config-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

function write(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

/** What is wrong with these variables and this file. */
function problemsOf(env: NodeJS.ProcessEnv, file?: string): readonly string[] {
  try {
    loadConfig({ findNearest, env: { ...SERVERS, ...env }, ...(file !== undefined && { file }) });
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

const HOW_TO_MAKE_ONE =
  ' (openssl rand -base64 32 makes one; keep it safe, since no secret of an endpoint can be read without it)';

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
        DUEPOST_CALENDARS_DIR: folder,
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
      calendarsDir: folder,
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
    const file = write('more.json', '{"http":{"port":9000,"host":"::1"},"egress":{"timeoutMs":3000}}');
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

describe('a bad configuration', () => {
  it('is refused with all its problems at once, naming key and variable', () => {
    expect(
      problemsOf({
        DUEPOST_HTTP_PORT: '80a',
        DUEPOST_EGRESS_CLIENT: 'curl',
        DUEPOST_EGRESS_ALLOW: '127.0.0.1,10.0.0.0/33',
        DUEPOST_EGRESS_ALLOW_HTTP: 'maybe',
        DUEPOST_WORKER_PREFETCH: '-1',
        DUEPOST_BROKER_PREFIX: 'amq.mine',
        DUEPOST_LOG_LEVEL: 'loud',
        DUEPOST_TZ_MINIMUM_VERSION: 'new',
      }),
    ).toEqual([
      'broker.prefix (DUEPOST_BROKER_PREFIX) must look like duepost: value was "amq.mine"',
      'http.port (DUEPOST_HTTP_PORT) must be a whole number from 0 to 65535: value was "80a"',
      'egress.client (DUEPOST_EGRESS_CLIENT) must be one of node-fetch, undici: value was "curl"',
      'egress.allow (DUEPOST_EGRESS_ALLOW) must be a list of CIDRs such as 10.20.0.0/16: value was ["127.0.0.1","10.0.0.0/33"]',
      'egress.allowHttp (DUEPOST_EGRESS_ALLOW_HTTP) must be true or false: value was "maybe"',
      'worker.prefetch (DUEPOST_WORKER_PREFETCH) must be a whole number from 1 to 10000: value was -1',
      'log.level (DUEPOST_LOG_LEVEL) must be one of error, warn, info, debug: value was "loud"',
      'tz.minimumVersion (DUEPOST_TZ_MINIMUM_VERSION) must look like 2025b: value was "new"',
    ]);
  });

  it('is refused for every unknown key and variable, with a suggestion where one is near', () => {
    const file = write(
      'typos.json',
      '{"retrys":5,"http":{"timeoutms":1,"prot":80},"wroker":{"prefetch":3},"egress":{},"__proto__":{"x":1},"sealing":{"privateKey":"abc"}}',
    );
    const label = `the configuration file ${file}`;
    expect(
      problemsOf({ DUEPOST_EGRESS_TIMEOUT: '5', DUEPOST_FOO: '1', DUEPOST_HTTP_PORT_FILE: 'x' }, file),
    ).toEqual([
      'DUEPOST_EGRESS_TIMEOUT is not a variable of duepost; did you mean DUEPOST_EGRESS_TIMEOUT_MS?',
      'DUEPOST_FOO is not a variable of duepost',
      'DUEPOST_HTTP_PORT_FILE is not a variable of duepost; did you mean DUEPOST_HTTP_PORT?',
      `${label}: retrys is not a setting`,
      `${label}: http.timeoutms is not a setting; did you mean egress.timeoutMs?`,
      `${label}: http.prot is not a setting; did you mean http.port?`,
      `${label}: wroker.prefetch is not a setting; did you mean worker.prefetch?`,
      `${label}: __proto__.x is not a setting`,
      `${label}: sealing.privateKey is a secret: set DUEPOST_SEALING_KEY or DUEPOST_SEALING_KEY_FILE instead`,
    ]);
  });

  it.each([
    ['{"http":{"port":1,"host":"::1","port":2}}', 'has the key http.port twice'],
    ['{"http":{"port":1},"\\u0068ttp":{}}', 'has the key http twice'],
    ['{"http":{"port":1},\n"log":}', 'is not valid JSON'],
    ['[]', 'must hold one JSON object'],
    ['{"http":{"port":{"a":1}}}', 'http.port must be a value, not an object'],
    ['{"http":{"port":null}}', 'http.port is missing: set DUEPOST_HTTP_PORT'],
    ['{"http":7}', 'http is not a setting'],
    ['{"http":{"host":"::1\\u0000"}}', 'http.host has a line break or another control character in it'],
  ])('is refused when its file is %s', (text, problem) => {
    const [first, ...others] = problemsOf({}, write('bad.json', text));
    expect(first).toContain(problem);
    expect(others).toEqual([]);
  });

  it('is refused when its file does not exist', () => {
    expect(problemsOf({}, '/nowhere/duepost.json')).toEqual([
      'the configuration file /nowhere/duepost.json cannot be read (ENOENT)',
    ]);
  });

  it('is refused when the claim could end during its call', () => {
    expect(problemsOf({ DUEPOST_EGRESS_TIMEOUT_MS: '20000', DUEPOST_CLAIM_LEASE_MS: '21999' })).toEqual([
      'claim.leaseMs (DUEPOST_CLAIM_LEASE_MS) must be at least egress.timeoutMs + 2000 = 22000, so that no claim ends during its call: value was 21999',
    ]);
    expect(problemsOf({ DUEPOST_EGRESS_TIMEOUT_MS: '20000', DUEPOST_CLAIM_LEASE_MS: '22000' })).toEqual([]);
  });

  it('is refused when the horizon is shorter than two minutes outside of test', () => {
    expect(problemsOf({ DUEPOST_HORIZON_MS: '119999' })).toHaveLength(1);
    expect(problemsOf({ DUEPOST_HORIZON_MS: '119999', DUEPOST_ENV: 'test' })).toEqual([]);
    expect(problemsOf({ DUEPOST_HORIZON_MS: '3600001', DUEPOST_ENV: 'test' })).toHaveLength(1);
  });

  it('is refused when the environment is unknown', () => {
    expect(problemsOf({ DUEPOST_ENV: 'prodution' })[0]).toBe(
      'DUEPOST_ENV must be one of development, test, staging, production; did you mean production?',
    );
  });

  it.each(['staging', 'production'])(
    'is refused in %s without a master key or with the one of development',
    (name) => {
      const developmentKey = loadConfig({ env: SERVERS }).masterKey.toString('base64');
      const isPublic = `masterKey (DUEPOST_MASTER_KEY) is the development key, which everyone can read: make one for ${name}${HOW_TO_MAKE_ONE}`;
      expect(problemsOf({ DUEPOST_ENV: name })).toEqual([
        `masterKey is missing: set DUEPOST_MASTER_KEY${HOW_TO_MAKE_ONE}`,
      ]);
      expect(problemsOf({ DUEPOST_ENV: name, DUEPOST_MASTER_KEY: developmentKey })).toEqual([isPublic]);
      expect(
        problemsOf({
          DUEPOST_ENV: name,
          DUEPOST_MASTER_KEY: MASTER_KEY.toString('base64'),
          DUEPOST_MASTER_KEY_PREVIOUS: developmentKey,
        }),
      ).toEqual([isPublic]);
    },
  );

  it('is refused without servers, except by who does not need them', () => {
    const env = { DUEPOST_ENV: 'production' };
    expect(() => loadConfig({ env })).toThrow(
      `database.url is missing: set DUEPOST_DATABASE_URL\nbroker.url is missing: set DUEPOST_AMQP_URL\nmasterKey is missing: set DUEPOST_MASTER_KEY${HOW_TO_MAKE_ONE}`,
    );
    const config = loadConfig({ env, needs: [] });
    expect([config.database.url, config.broker.url, config.masterKey.length]).toEqual(['', '', 0]);
    expect(() => loadConfig({ env, needs: ['broker'] })).toThrow(
      /^broker\.url is missing: set DUEPOST_AMQP_URL$/,
    );
  });

  it('is refused when the folder of calendars does not exist', () => {
    expect(problemsOf({ DUEPOST_CALENDARS_DIR: '/nowhere' })).toEqual([
      'calendarsDir (DUEPOST_CALENDARS_DIR) is not a folder',
    ]);
  });
});

describe('variables that are not ours', () => {
  it('are left alone: other programs, our scripts, service links of Kubernetes', () => {
    expect(
      problemsOf({
        PATH: '/bin',
        NODE_ENV: 'production',
        DUEPOST_NO_INSTALL: '1',
        DUEPOST_POSTGRES_PORT: '20000',
        DUEPOST_SERVICE_HOST: '10.0.0.1',
        DUEPOST_SERVICE_PORT: '80',
        DUEPOST_PORT: 'tcp://10.0.0.1:80',
        DUEPOST_PORT_80_TCP_ADDR: '10.0.0.1',
      }),
    ).toEqual([]);
  });
});

describe('hidden characters', () => {
  it('are trimmed once: line ends of env files, white space, quotes, a byte order mark', () => {
    const config = loadConfig({
      env: {
        DUEPOST_DATABASE_URL: ` "${DATABASE_URL}"\r\n`,
        DUEPOST_AMQP_URL: `'${AMQP_URL}'\r`,
        DUEPOST_MASTER_KEY_FILE: `${write('key', `\uFEFF${MASTER_KEY.toString('base64')}\r\n`)}\r`,
        DUEPOST_HTTP_PORT: '8081\r',
        DUEPOST_ENV: 'production\r',
        DUEPOST_EGRESS_ALLOW: '10.0.0.0/8, 10.0.0.0/9\r',
      },
    });
    expect([config.database.url, config.broker.url]).toEqual([DATABASE_URL, AMQP_URL]);
    expect(config.masterKey).toEqual(MASTER_KEY);
    expect([config.http.port, config.env]).toEqual([8081, 'production']);
    expect(config.egress.allow).toEqual(['10.0.0.0/8', '10.0.0.0/9']);
  });

  it('inside of a value are refused by name', () => {
    expect(
      problemsOf({
        DUEPOST_BROKER_PREFIX: 'due\rpost',
        DUEPOST_MASTER_KEY_FILE: write('two-lines', 'canary-1\ncanary-2'),
      }),
    ).toEqual([
      'DUEPOST_BROKER_PREFIX has a line break or another control character in it',
      'DUEPOST_MASTER_KEY_FILE has a line break or another control character in it',
    ]);
  });

  it('in a sealing key are its own line breaks, escaped or not', () => {
    for (const text of [
      SEALING_KEY,
      `"${SEALING_KEY.replaceAll('\n', '\\n')}"`,
      SEALING_KEY.replaceAll('\n', '\r\n'),
    ]) {
      const { sealing } = loadConfig({ env: { ...SERVERS, DUEPOST_SEALING_KEY: text } });
      expect(sealing.privateKey).toBe(SEALING_KEY.trim());
    }
  });
});

describe('URLs with special characters', () => {
  it.each([['p@s?s#w%rd/é$'], ['p@ss'], ['pa/ss'], ['pa?ss'], ['pa#ss'], ['pa%ss'], ['paéss'], ['pa ss']])(
    'are refused when the password %s is not percent-encoded, without a part of it',
    (password) => {
      for (const [variable, scheme] of [
        ['DUEPOST_AMQP_URL', 'amqp'],
        ['DUEPOST_DATABASE_URL', 'postgres'],
      ] as const) {
        const problems = problemsOf({ [variable]: `${scheme}://canary:${password}@broker.internal/x` });
        expect(problems).toHaveLength(1);
        expect(problems[0]).toContain(variable);
        expect(problems[0]).toContain('percent-encode');
        for (const part of ['canary', 'internal', password]) expect(problems[0]).not.toContain(part);
      }
    },
  );

  it('are taken as they are when encoded', () => {
    const encoded = `amqp://user:${encodeURIComponent('p@s?s#w%rd/é$')}@127.0.0.1:5672/my%2fvhost`;
    expect(loadConfig({ env: { ...SERVERS, DUEPOST_AMQP_URL: encoded } }).broker.url).toBe(encoded);
    const queried = 'postgresql://%2Fvar%2Frun/duepost?sslmode=require';
    expect(loadConfig({ env: { ...SERVERS, DUEPOST_DATABASE_URL: queried } }).database.url).toBe(queried);
  });

  it.each(['amqp://h//', 'amqp://h/my/vhost'])(
    'are refused when the virtual host is not encoded: %s',
    (url) => {
      expect(problemsOf({ DUEPOST_AMQP_URL: url })[0]).toContain('percent-encode it, / as %2F');
    },
  );

  it.each(['localhost:5672', 'http://localhost', 'amqp://', 'amqp://h:port'])(
    'are refused when they are %s',
    (url) => {
      expect(problemsOf({ DUEPOST_AMQP_URL: url })).toHaveLength(1);
    },
  );
});

describe('secrets', () => {
  it('come from files as well, but not from both', () => {
    const env = {
      DUEPOST_DATABASE_URL_FILE: write('database', `${DATABASE_URL}\n`),
      DUEPOST_AMQP_URL_FILE: write('amqp', `${AMQP_URL}\n`),
      DUEPOST_SEALING_KEY_FILE: write('sealing.pem', SEALING_KEY),
    };
    const config = loadConfig({ env });
    expect([config.database.url, config.broker.url, config.sealing.privateKey]).toEqual([
      DATABASE_URL,
      AMQP_URL,
      SEALING_KEY.trim(),
    ]);
    expect(() => loadConfig({ env: { ...env, DUEPOST_AMQP_URL: AMQP_URL } })).toThrow(
      'DUEPOST_AMQP_URL and DUEPOST_AMQP_URL_FILE are both set: use one of them',
    );
  });

  it('are not in the message when one was put where its path belongs', () => {
    expect(problemsOf({ DUEPOST_MASTER_KEY_FILE: 'canary-secret' })).toEqual([
      'DUEPOST_MASTER_KEY_FILE names a file that cannot be read (ENOENT)',
    ]);
  });

  it('are never in a problem', () => {
    const problems = problemsOf({
      DUEPOST_MASTER_KEY: 'canary-1',
      DUEPOST_MASTER_KEY_PREVIOUS: 'canary-2',
      DUEPOST_SEALING_KEY: '-----BEGIN PRIVATE KEY-----canary-3',
      DUEPOST_AMQP_URL: 'http://canary-4:canary-5@h/',
      DUEPOST_DATABASE_URL: 'postgres://canary-6:canary-7@h:port/',
      DUEPOST_MANAGEMENT_URL: 'ftp://canary-8',
    });
    expect(problems).toHaveLength(6);
    expect(problems.join('\n')).not.toContain('canary');
  });

  it('are never in the description, which shows everything else', () => {
    const config = loadConfig({
      env: {
        DUEPOST_DATABASE_URL: 'postgres://canary:canary@db.internal/duepost?password=canary',
        DUEPOST_AMQP_URL: 'amqp://canary:canary@mq.internal',
        DUEPOST_MASTER_KEY: MASTER_KEY.toString('base64'),
        DUEPOST_MASTER_KEY_PREVIOUS: Buffer.alloc(32, 'canary').toString('base64'),
        DUEPOST_SEALING_KEY: SEALING_KEY,
      },
    });
    const described = describeConfig(config);
    expect(described).toMatchObject({
      env: 'development',
      database: { url: 'postgres://***@db.internal/duepost?***', poolSize: 8 },
      broker: { url: 'amqp://***@mq.internal', managementUrl: null },
      masterKey: '***',
      previousMasterKeys: '***',
      claim: { leaseMs: 15_000 },
      sealing: { privateKey: '***', intervalMs: 60_000 },
      egress: { allow: ['127.0.0.0/8', '::1/128'] },
    });
    expect(leavesOf(described).sort()).toEqual(['env', ...Object.keys(SETTINGS)].sort());
    const text = JSON.stringify(described);
    for (const secret of [
      'canary',
      MASTER_KEY.toString('base64'),
      'Y2FuYXJ5',
      'PRIVATE',
      '"type":"Buffer"',
    ]) {
      expect(text).not.toContain(secret);
    }
  });
});

describe('the problems', () => {
  it('are one line each, whatever is in a name or value', () => {
    const forged = '\r\n{"level":"info"}\u0085\u001b[2J\u2028';
    const problems = problemsOf(
      { [`DUEPOST_X${forged}`]: '1', DUEPOST_ENV: `x${forged}y` },
      write('f.json', JSON.stringify({ [forged]: 1, http: { host: 'a b\u202e' } })),
    );
    expect(problems.length).toBeGreaterThan(3);
    expect(problems.join('')).not.toMatch(/[\p{Cc}\u2028\u2029\u202e]/u);
  });
});

describe('calendar files', () => {
  it('are found by code, read once and undefined when there is none', () => {
    const path = write('DE-BY.json', '{"time_zone":"Europe/Berlin"}');
    const find = loadCalendarSource(folder);
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
      join(folder, 'DE-BY'),
      '',
      '\0',
    ]) {
      expect(find(code)).toBeUndefined();
    }
  });

  it('say what is wrong with them', () => {
    write('AT.json', '{"time_zone":');
    write('CH.json', '{"a":1,"a":2}');
    const find = loadCalendarSource(folder);
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

function leavesOf(value: Record<string, unknown>, path = ''): string[] {
  return Object.entries(value).flatMap(([key, child]) =>
    typeof child === 'object' && child !== null && !Array.isArray(child)
      ? leavesOf(child as Record<string, unknown>, `${path}${key}.`)
      : [`${path}${key}`],
  );
}
