import { Command, CommanderError } from 'commander';
import { Refusal } from '../domain/refusal.ts';
import { version } from '../runtime/build-info.ts';
import { ConfigError } from '../runtime/config.ts';
import { scrub } from '../runtime/log.ts';
import { CheckFailed } from './check-failed.ts';
import { addMigrate } from './migrate.ts';
import { addStart } from './start.ts';
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
    .showHelpAfterError()
    .configureHelp({ sortSubcommands: true });
  addStart(program);
  addMigrate(program);
  addTopology(program);
  return program;
}

/**
 * Runs one command line.
 *
 * @returns the exit code: 0 done, 1 failed, 2 wrong usage
 */
export async function runProgram(args: readonly string[]): Promise<number> {
  try {
    await createProgram().parseAsync(args, { from: 'user' });
    return typeof process.exitCode === 'number' ? process.exitCode : DONE;
  } catch (error) {
    return report(error);
  }
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
  complain(error instanceof Error ? describe(error) : String(error));
  return FAILED;
}

/** A connection that failed on every address has its reasons inside and an empty message. */
function describe(error: Error): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(String).join('; ');
  return error.message;
}

function complain(text: string): void {
  process.stderr.write(`duepost: ${scrub(text)}\n`);
}
