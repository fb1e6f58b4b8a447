import { hostname, userInfo } from 'node:os';
import type { Command } from 'commander';
import { findNearest } from '../domain/nearest.ts';
import { type Config, loadConfig, type Need } from '../runtime/config.ts';
import { type Log, openLog } from '../runtime/log.ts';
import { inScope, type Scope } from '../runtime/scope.ts';
import { writeAnswer } from './print.ts';

/** Options that every command has. */
export interface CommonOptions {
  readonly json?: boolean;
  readonly config?: string;
}

/** What a command works with. */
export interface Context {
  readonly config: Config;
  readonly log: Log;
  readonly scope: Scope;
  /** Who is at the keyboard, for the audit trail. */
  readonly actor: string;
  /** Whether the answer is for a program. */
  readonly json: boolean;
  /** The answer, on stdout: as one line of JSON with `--json`, else as `human` says. */
  print(value: unknown, human?: () => string): void;
}

/** Adds what every command has. */
export function withCommonOptions(command: Command): Command {
  return command
    .option('--json', 'answer with JSON on stdout')
    .option('--config <file>', 'one more configuration file, above config/<environment>.json');
}

/** Adds examples to a command's help. */
export function withExamples(command: Command, ...examples: string[]): Command {
  return command.addHelpText('after', `\nExamples:\n${examples.map((line) => `  ${line}`).join('\n')}`);
}

/** Loads the configuration as the options say; throws ConfigError. */
export function loadConfigFor(options: CommonOptions, needs?: readonly Need[]): Config {
  return loadConfig({
    findNearest,
    ...(needs === undefined ? {} : { needs }),
    ...(options.config === undefined ? {} : { file: options.config }),
  });
}

/** Runs a command's work with the configuration loaded and everything it opened closed again. */
export async function inContext(
  options: CommonOptions,
  work: (context: Context) => Promise<void> | void,
  needs?: readonly Need[],
): Promise<void> {
  const config = loadConfigFor(options, needs);
  // A person wants the answer, not the connections that were made for it.
  const log = openLog({ ...config.log, level: config.log.level === 'info' ? 'warn' : config.log.level });
  exitOnCrash(log);
  const json = options.json ?? false;
  try {
    const stop = await inScope((scope) =>
      work({
        config,
        log,
        scope,
        json,
        actor: currentActor(),
        print: (value, human) => writeAnswer(value, json ? undefined : human, json),
      }),
    );
    await stop();
  } finally {
    await log.flush();
  }
}

/** A bug must not end the process before its reason has left it. */
export function exitOnCrash(log: Log): void {
  const onCrash = (error: unknown): void => {
    log.fault('crashed', error);
    void log.flush().then(() => process.exit(1));
  };
  process.on('uncaughtException', onCrash);
  process.on('unhandledRejection', onCrash);
}

function currentActor(): string {
  // A container may run under a number that has no name.
  let user = 'unknown';
  try {
    user = userInfo().username;
  } catch {
    user = String(process.getuid?.() ?? user);
  }
  return `cli:${user}@${hostname()}`;
}
