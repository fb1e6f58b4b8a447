import type { Command } from 'commander';
import { InvalidArgumentError } from 'commander';
import { ROLES, type Role, startRoles } from '../roles/all.ts';
import { loadConfig } from '../runtime/config.ts';
import { armKillPoint } from '../runtime/kill-point.ts';
import { openLog } from '../runtime/log.ts';
import { type CommonOptions, withCommonOptions } from './context.ts';

/** `duepost start`: the roles of this process, until a signal. */
export function addStart(program: Command): void {
  withCommonOptions(program.command('start'))
    .description('run the product: all roles, or those named')
    .option('--roles <list>', 'api, ingress, worker, reconciler; separated by commas', parseRoles, [...ROLES])
    .addHelpText('after', '\nExample:\n  duepost start --roles worker,reconciler')
    .action(async (options: CommonOptions & { roles: Role[] }) => {
      process.exitCode = await serve(options);
    });
}

function parseRoles(text: string): Role[] {
  const names = text.split(',').map((name) => name.trim());
  for (const name of names) {
    if (!(ROLES as readonly string[]).includes(name)) {
      throw new InvalidArgumentError(`${name} is no role; known are ${ROLES.join(', ')}`);
    }
  }
  return names as Role[];
}

/** @returns 0 when everything was finished or handed back in time, 1 when it was not */
async function serve(options: CommonOptions & { roles: Role[] }): Promise<number> {
  const config = loadConfig(options.config === undefined ? {} : { file: options.config });
  armKillPoint(config.killPoint);
  const log = openLog(config.log);
  const onCrash = (error: unknown): void => {
    log.fault('crashed', error);
    void log.flush().then(() => process.exit(1));
  };
  process.once('uncaughtException', onCrash);
  process.once('unhandledRejection', onCrash);
  const signalled = nextSignal();
  const stop = await startRoles(options.roles, config, log);
  log.info('started', { roles: options.roles, pid: process.pid });
  log.info('stopping', { signal: await signalled });
  // Whoever asks twice does not want to wait.
  void nextSignal().then(() => process.exit(1));
  const code = await finish(stop, config.shutdownMs);
  log.info('stopped', { code });
  await log.flush();
  // What a forced stop leaves behind (sockets, timers) must not keep the process.
  process.exit(code);
}

async function finish(stop: () => Promise<void>, shutdownMs: number): Promise<number> {
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<'expired'>((resolve) => {
    timer = setTimeout(() => resolve('expired'), shutdownMs);
  });
  try {
    return (await Promise.race([stop().then(() => 'stopped' as const), expired])) === 'stopped' ? 0 : 1;
  } catch {
    return 1;
  } finally {
    clearTimeout(timer);
  }
}

function nextSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    process.once('SIGTERM', resolve);
    process.once('SIGINT', resolve);
  });
}
