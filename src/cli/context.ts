import { hostname, userInfo } from 'node:os';
import type { Command } from 'commander';
import { type Config, loadConfig } from '../runtime/config.ts';
import { type Log, openLog } from '../runtime/log.ts';
import { inScope, type Scope } from '../runtime/scope.ts';

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
  /** The answer, on stdout: as JSON with `--json`, else as `human` says. */
  print(value: unknown, human?: () => string): void;
}

/** Adds what every command has. */
export function withCommonOptions(command: Command): Command {
  return command
    .option('--json', 'answer with JSON on stdout')
    .option('--config <file>', 'one more configuration file, above config/<environment>.json');
}

/** Runs a command's work with the configuration loaded and everything it opened closed again. */
export async function inContext(
  options: CommonOptions,
  work: (context: Context) => Promise<void>,
  needs: { readonly servers: boolean } = { servers: true },
): Promise<void> {
  const config = loadConfig({
    requireServers: needs.servers,
    ...(options.config === undefined ? {} : { file: options.config }),
  });
  const log = openLog(config.log);
  const json = options.json ?? false;
  try {
    const stop = await inScope((scope) =>
      work({
        config,
        log,
        scope,
        json,
        actor: `cli:${userInfo().username}@${hostname()}`,
        print: (value, human) => {
          process.stdout.write(
            `${json || human === undefined ? JSON.stringify(value, undefined, json ? 0 : 2) : human()}\n`,
          );
        },
      }),
    );
    await stop();
  } finally {
    await log.flush();
  }
}
