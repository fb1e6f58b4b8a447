import type { Command } from 'commander';
import { type Config, ConfigError } from '../../runtime/config.ts';
import { openLog } from '../../runtime/log.ts';
import { reasonOf } from '../../runtime/outage.ts';
import { openPool } from '../../store/pool.ts';
import { CheckFailed } from '../check-failed.ts';
import {
  type CommonOptions,
  exitOnCrash,
  loadConfigFor,
  withCommonOptions,
  withExamples,
} from '../context.ts';
import { formatTable, writeAnswer } from '../print.ts';
import { checkBroker } from './broker.ts';
import { checkDatabase } from './database.ts';
import { type Finding, ok, wrong } from './finding.ts';
import { checkHost, checkKeyChoice } from './host.ts';
import { checkPort } from './port.ts';

/** `duepost doctor`. */
export function addDoctor(program: Command): void {
  const command = withCommonOptions(program.command('doctor'))
    .description(
      'check everything that a broken installation gets wrong, and say how to mend each; changes nothing',
    )
    .action(async (options: CommonOptions) => {
      const findings = await examine(options);
      const healthy = findings.every(({ status }) => status !== 'wrong');
      const json = options.json ?? false;
      writeAnswer({ healthy, checks: findings }, json ? undefined : () => format(findings), json);
      if (!healthy) throw new CheckFailed();
    });
  withExamples(
    command,
    'duepost doctor',
    `duepost doctor --json | jq '.checks[] | select(.status == "wrong")'`,
  );
}

async function examine(options: CommonOptions): Promise<Finding[]> {
  let config: Config;
  try {
    config = loadConfigFor(options);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map((problem) =>
      wrong('configuration', problem, 'see docs/configuration.md; duepost config check says the same'),
    );
  }
  // What goes wrong becomes a finding; the log would only say it a second time.
  const log = openLog({ ...config.log, level: 'error' });
  exitOnCrash(log);
  const pool = openPool({ ...config.database, poolSize: 1 }, log);
  try {
    const [database, broker] = await Promise.all([
      checkDatabase(pool, config).catch((error: unknown) => [unfinished('database', error)]),
      checkBroker(config).catch((error: unknown) => [unfinished('broker', error)]),
    ]);
    const configuration = ok('configuration', `in order, for ${config.env}`);
    const host = [...checkHost(config), await checkPort(config), ...checkKeyChoice(config)];
    return [configuration, ...host, ...database, ...broker];
  } finally {
    await pool.end();
  }
}

function unfinished(check: string, error: unknown): Finding {
  return wrong(
    check,
    `the check ended early: ${reasonOf(error)}`,
    'mend that, and what else is wrong here, then run it again',
  );
}

const MARKS: Readonly<Record<Finding['status'], string>> = {
  ok: 'ok',
  warning: 'WARN',
  wrong: 'WRONG',
  skipped: 'skipped',
};

function format(findings: readonly Finding[]): string {
  const table = formatTable(
    ['', 'check', 'what was found'],
    findings.map(({ check, status, detail }) => [MARKS[status], check, detail]),
  );
  const mends = findings.flatMap(({ check, mend }) => (mend === undefined ? [] : [`  ${check}: ${mend}`]));
  const count = findings.filter(({ status }) => status === 'wrong').length;
  const verdict =
    count === 0 ? 'nothing is wrong' : `${count} ${count === 1 ? 'thing is' : 'things are'} wrong`;
  return [table, '', ...(mends.length === 0 ? [] : ['What to do:', ...mends, '']), verdict].join('\n');
}
