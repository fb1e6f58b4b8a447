import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { describeConfig, loadConfig } from '../../src/runtime/config.ts';
import { SETTINGS } from '../../src/runtime/config-settings.ts';
import { AMQP_URL, DATABASE_URL, leavesOf, problemsOf, SERVERS, useFolder } from './config-support.ts';

const MASTER_KEY = randomBytes(32);
const SEALING_KEY = generateKeyPairSync('ed25519')
  .privateKey.export({ type: 'pkcs8', format: 'pem' })
  .toString();
const folder = useFolder();

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
        DUEPOST_MASTER_KEY_FILE: `${folder.write('key', `\uFEFF${MASTER_KEY.toString('base64')}\r\n`)}\r`,
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
        DUEPOST_MASTER_KEY_FILE: folder.write('two-lines', 'canary-1\ncanary-2'),
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
      DUEPOST_DATABASE_URL_FILE: folder.write('database', `${DATABASE_URL}\n`),
      DUEPOST_AMQP_URL_FILE: folder.write('amqp', `${AMQP_URL}\n`),
      DUEPOST_SEALING_KEY_FILE: folder.write('sealing.pem', SEALING_KEY),
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
