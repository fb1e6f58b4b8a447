import type { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { createProgram } from '../../src/cli/program.ts';
import { DEVELOPMENT_MASTER_KEY } from '../../src/runtime/config-checks.ts';
import { runCli } from '../support/cli.ts';

const SERVERS = {
  DUEPOST_ENV: 'test',
  DUEPOST_DATABASE_URL: 'postgres://ada:pa55word@127.0.0.1:1/none',
  DUEPOST_AMQP_URL: 'amqp://bob:s3cret@127.0.0.1:1',
};

describe('wrong usage ends with 2 and says what was meant', () => {
  test.each([
    [['endpoint', 'lst'], 'Did you mean list?'],
    [['endpoint', 'list', '--jsn'], 'Did you mean --json?'],
    [['endpoints'], 'Did you mean endpoint?'],
    [['endpoint', 'show'], "missing required argument 'endpoint'"],
    [['publish', '--payload', '1'], "'--type <type>' not specified"],
    [['publish', '--type', 'a.b', '--payload', '{'], 'must be JSON'],
    [['start', '--roles', 'worker,wroker'], 'wroker is no role'],
    [['key', 'create', '--name', 'x', '--scopes', 'root'], 'root is no scope'],
    [['endpoint', 'rotate-secret', 'x', '--overlap-hours', '721'], 'whole number from 0 to 720'],
    [['deliveries', 'list', '--limit', '0'], 'whole number from 1'],
    [['deliveries', 'list', '--state', 'lost'], 'Known are due, in_flight'],
    [['remind', '--file', 'renewals.xlsx'], 'must end in .csv, .jsonl'],
    [['remind', '--contract', 'pol-1'], "'--endpoint <endpoint>' is missing"],
    [['dead-letters', 'replay'], 'a filter, or --all'],
    [['receive', '--answer', '700'], '700 is no status'],
  ])('duepost %j: %s', async (args, text) => {
    const { code, stdout, stderr } = await runCli(args, SERVERS);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(text);
  });
});

test('help goes to stdout and is no failure', async () => {
  const { code, stdout, stderr } = await runCli(['--help']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain('duepost doctor');
});

describe('every command', () => {
  const commands = leavesOf(createProgram());

  test.each(commands.map((command) => [nameOf(command), command] as const))(
    '%s has --json and says what it is for',
    (_, command) => {
      expect(command.description()).not.toBe('');
      expect(command.options.map((option) => option.long)).toContain('--json');
      expect(command.helpInformation()).not.toMatch(/default: [[{]/);
    },
  );

  function leavesOf(command: Command): Command[] {
    const leaves = command.commands.flatMap(leavesOf);
    return leaves.length === 0 ? [command] : leaves;
  }

  function nameOf(command: Command): string {
    return command.parent === null ? '' : `${nameOf(command.parent)} ${command.name()}`.trim();
  }
});

test('config shows what is in force and no secret', async () => {
  const masterKey = Buffer.alloc(32, 7).toString('base64');
  for (const args of [['config'], ['config', '--json']]) {
    const { code, stdout } = await runCli(args, { ...SERVERS, DUEPOST_MASTER_KEY: masterKey });
    expect(code).toBe(0);
    expect(stdout).toContain('postgres://***@127.0.0.1:1/none');
    for (const secret of ['pa55word', 's3cret', masterKey]) expect(stdout).not.toContain(secret);
  }
});

test('config check, start and doctor name everything that is wrong with a configuration', async () => {
  const env = {
    ...SERVERS,
    DUEPOST_HTTP_PRT: '80',
    DUEPOST_WORKER_PREFETCH: 'many',
    DUEPOST_CLAIM_LEASE_MS: '3000',
  };
  for (const args of [['config', 'check'], ['start'], ['doctor'], ['endpoint', 'list']]) {
    const { code, stdout, stderr } = await runCli(args, env);
    expect(code).toBe(1);
    const said = args[0] === 'doctor' ? stdout : stderr;
    expect(said).toContain('did you mean DUEPOST_HTTP_PORT?');
    expect(said).toContain('DUEPOST_WORKER_PREFETCH');
    expect(said).toContain('DUEPOST_CLAIM_LEASE_MS');
  }
  const { code, json } = await runCli(['config', 'check', '--json'], SERVERS);
  expect({ code, json }).toEqual({ code: 0, json: { ok: true, env: 'test' } });
});

test('a master key that is missing or everybody knows is told with how to make one', async () => {
  for (const key of [{}, { DUEPOST_MASTER_KEY: DEVELOPMENT_MASTER_KEY }]) {
    const { code, stderr } = await runCli(['config', 'check'], {
      ...SERVERS,
      DUEPOST_ENV: 'production',
      ...key,
    });
    expect([code, stderr]).toEqual([1, expect.stringMatching(/masterKey .*openssl rand -base64 32/)]);
  }
});

test('calendar explain tells the steps, to people and to programs, without any server', async () => {
  const args = [
    'calendar',
    'explain',
    '--renewal-date',
    '2027-03-31',
    '--notice',
    'P30D',
    '--jurisdiction',
    'DE-BY',
  ];
  const told = await runCli(args, { DUEPOST_ENV: 'test' });
  expect(told.stdout).toContain('30 days before 2027-03-31 is Monday, 1 March 2027.');
  const { json } = await runCli([...args, '--json'], { DUEPOST_ENV: 'test' });
  expect(json).toMatchObject({
    due_at: '2027-03-01T08:00:00.000Z',
    deadline_at: '2027-03-30T22:00:00.000Z',
    time_zone: 'Europe/Berlin',
    proof: { calendar_code: 'DE-BY' },
  });
  expect(json['steps']).toEqual(expect.arrayContaining([expect.objectContaining({ rule: 'deadline' })]));
  const refused = await runCli([...args.slice(0, -1), 'DE-XX'], { DUEPOST_ENV: 'test' });
  expect({ code: refused.code, stdout: refused.stdout }).toEqual({ code: 1, stdout: '' });
  expect(refused.stderr).toContain('unknown_jurisdiction');
});
