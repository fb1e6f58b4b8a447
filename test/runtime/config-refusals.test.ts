import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/runtime/config.ts';
import { HOW_TO_MAKE_ONE, problemsOf, SERVERS, useFolder } from './config-support.ts';

const MASTER_KEY = randomBytes(32);
const folder = useFolder();

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
    const file = folder.write(
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
    const [first, ...others] = problemsOf({}, folder.write('bad.json', text));
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

describe('the problems', () => {
  it('are one line each, whatever is in a name or value', () => {
    const forged = '\r\n{"level":"info"}\u0085\u001b[2J\u2028';
    const problems = problemsOf(
      { [`DUEPOST_X${forged}`]: '1', DUEPOST_ENV: `x${forged}y` },
      folder.write('f.json', JSON.stringify({ [forged]: 1, http: { host: 'a b\u202e' } })),
    );
    expect(problems.length).toBeGreaterThan(3);
    expect(problems.join('')).not.toMatch(/[\p{Cc}\u2028\u2029\u202e]/u);
  });
});
