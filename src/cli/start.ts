import { type Command, InvalidArgumentError, Option } from 'commander';
import { ROLES, type Role } from '../roles/role.ts';
import { withoutFloods } from '../runtime/flood.ts';
import { armKillPoint } from '../runtime/kill-point.ts';
import { type Log, openLog } from '../runtime/log.ts';
import type { Stop } from '../runtime/scope.ts';
import {
  type CommonOptions,
  exitOnCrash,
  loadConfigFor,
  withCommonOptions,
  withExamples,
} from './context.ts';

/** `duepost start`: the roles of this process, until a signal. */
export function addStart(program: Command): void {
  const command = withCommonOptions(program.command('start'))
    .description(
      'run the product: all roles, or those named; SIGTERM finishes or hands back what is in hand, a second signal exits at once',
    )
    .addOption(
      new Option('--roles <list>', `which of ${ROLES.join(', ')}, separated by commas`)
        .argParser(parseRoles)
        .default([...ROLES], 'all of them'),
    )
    .action((options: CommonOptions & { roles: Role[] }) => serve(options));
  withExamples(command, 'duepost start', 'duepost start --roles worker,reconciler');
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

/** Exits with 0 when everything was finished or handed back in time, with 1 when it was not. Throws when it cannot start. */
async function serve(options: CommonOptions & { roles: Role[] }): Promise<void> {
  const config = loadConfigFor(options);
  armKillPoint(config.killPoint);
  const log = withoutFloods(openLog(config.log));
  exitOnCrash(log);
  const signalled = nextSignal();
  // Whoever asks twice does not want to wait, not even for a start.
  void signalled.then(nextSignal).then(() => process.exit(1));
  // What serves and measures takes longer to load than all the rest, and only this command needs it.
  const { startRoles } = await import('../roles/all.ts');
  const starting = startRoles(options.roles, config, log);
  const running = await Promise.race([signalled.then(() => undefined), starting]);
  if (running !== undefined) {
    log.info('started', { roles: options.roles, pid: process.pid });
    process.stderr.write(`duepost: ${options.roles.join(', ')} at ${running.httpUrl}\n`);
  }
  log.info('stopping', { signal: await signalled });
  const code = await finish(async () => (await starting)(), { withinMs: config.shutdownMs, log });
  log.info('stopped', { code });
  await log.flush();
  // What a forced stop leaves behind (sockets, timers) must not keep the process.
  process.exit(code);
}

async function finish(
  stop: Stop,
  { withinMs, log }: { readonly withinMs: number; readonly log: Log },
): Promise<number> {
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<'expired'>((resolve) => {
    timer = setTimeout(() => resolve('expired'), withinMs);
  });
  try {
    return (await Promise.race([stop().then(() => 'stopped' as const), expired])) === 'stopped' ? 0 : 1;
  } catch (error) {
    log.fault('stop_failed', error);
    return 1;
  } finally {
    clearTimeout(timer);
  }
}

function nextSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    const take = (signal: NodeJS.Signals): void => {
      process.off('SIGTERM', take);
      process.off('SIGINT', take);
      resolve(signal);
    };
    process.on('SIGTERM', take);
    process.on('SIGINT', take);
    // Whoever started us as a part of itself (a drill, the demonstration) has gone.
    process.once('disconnect', () => take('SIGTERM'));
    // Listening would keep a process that could not start.
    process.channel?.unref();
  });
}
