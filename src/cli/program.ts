import { Command, CommanderError } from 'commander';
import { Refusal } from '../domain/refusal.ts';
import { version } from '../runtime/build-info.ts';
import { ConfigError } from '../runtime/config.ts';
import { isOutage, reasonOf } from '../runtime/outage.ts';
import { addAuditEvidence } from './audit/evidence.ts';
import { addAuditKeys } from './audit/keys.ts';
import { addAuditOperations } from './audit/operations.ts';
import { addAuditReconcile } from './audit/reconcile.ts';
import { addAuditRetention } from './audit/retention.ts';
import { addAuditSeal } from './audit/seal.ts';
import { addAudit } from './audit/show.ts';
import { addCalendarCheck } from './calendar/check.ts';
import { addCalendar } from './calendar/explain.ts';
import { CheckFailed } from './check-failed.ts';
import { addCommands } from './commands.ts';
import { complain } from './complain.ts';
import { addConfig } from './config.ts';
import { addDeadLetters } from './dead-letters.ts';
import { addDeliveries } from './deliveries.ts';
import { addDoctor } from './doctor/command.ts';
import { addDrill } from './drills/command.ts';
import { addDemo } from './drills/demo.ts';
import { addEndpoint } from './endpoint/command.ts';
import { addRemind } from './import/remind.ts';
import { addKey } from './key.ts';
import { addMigrate } from './migrate.ts';
import { isOutOfPlace, NOT_WRITTEN, watchOutput } from './output.ts';
import { addPublish } from './publish.ts';
import { addReceive } from './receive.ts';
import { addReschedule } from './reschedule.ts';
import { addShadow } from './shadow/report.ts';
import { addStart } from './start.ts';
import { addTop } from './top/command.ts';
import { addTopology } from './topology.ts';

const DONE = 0;
const FAILED = 1;
const WRONG_USAGE = 2;

/** The whole command line. */
export function createProgram(): Command {
  const program = new Command('duepost')
    .description('Delivers deadline-bound reminders and webhook events, and keeps the evidence.')
    .version(version)
    .exitOverride()
    .showHelpAfterError('(--help shows what there is)')
    .configureOutput({ outputError: complainOfUsage })
    .configureHelp({ sortSubcommands: true })
    .addHelpText('after', FIRST_STEPS);
  addStart(program);
  addDrill(program);
  addDemo(program);
  addMigrate(program);
  addTop(program);
  addTopology(program);
  addEndpoint(program);
  addReschedule(program);
  addRemind(program);
  addPublish(program);
  addDeliveries(program);
  addDeadLetters(program);
  addKey(program);
  addConfig(program);
  addCalendarCheck(addCalendar(program));
  addShadow(program);
  const audit = addAudit(program);
  addAuditEvidence(audit);
  addAuditSeal(audit);
  addAuditOperations(audit);
  addAuditKeys(audit);
  addAuditReconcile(audit);
  addAuditRetention(audit);
  addDoctor(program);
  addReceive(program);
  addCommands(program);
  return program;
}

const FIRST_STEPS = `
First steps:
  duepost doctor                    what is missing, and how to mend it
  duepost migrate                   bring the database up to this version
  duepost topology apply            make the exchanges and queues
  duepost receive --port 9000       a receiver to try with, in another terminal
  duepost endpoint create --name trial --url http://127.0.0.1:9000/
  duepost publish --type order.created --payload '{"total":12}'
  duepost start                     all roles, until Ctrl-C

Answers go to stdout, everything else to stderr. Exit codes: 0 done, 1 failed, 2 wrong usage,
74 the answer could not be written.`;

/**
 * Runs one command line.
 *
 * @returns the exit code: 0 done, 1 failed, 2 wrong usage, 74 the answer could not be written
 */
export async function runProgram(args: readonly string[]): Promise<number> {
  const exitCodeFor = watchOutput();
  try {
    await createProgram().parseAsync(args, { from: 'user' });
    return exitCodeFor(typeof process.exitCode === 'number' ? process.exitCode : DONE);
  } catch (error) {
    return exitCodeFor(report(error));
  }
}

/** Commander's own words, whose second line is a suggestion. */
function complainOfUsage(text: string): void {
  const [first = '', ...rest] = text.trim().split('\n');
  complain([first.replace(/^error: /, ''), ...rest].join(' '));
}

function report(error: unknown): number {
  if (error instanceof CheckFailed) return FAILED;
  if (error instanceof CommanderError) return error.exitCode === 0 ? DONE : WRONG_USAGE;
  if (error instanceof ConfigError) {
    for (const problem of error.problems) complain(problem);
    return FAILED;
  }
  if (error instanceof Refusal) {
    complain(`${error.code}: ${error.message}`);
    for (const fault of error.faults)
      if (fault.message !== error.message) complain(`  ${fault.path}: ${fault.message}`);
    return FAILED;
  }
  for (const line of reasonOf(error).split('\n')) complain(line);
  if (isAboutServers(error)) complain('duepost doctor looks at the database and the broker');
  return isOutOfPlace(error) ? NOT_WRITTEN : FAILED;
}

function isAboutServers(error: unknown): boolean {
  return isOutage(error) || (error as { code?: unknown }).code === '42501';
}
