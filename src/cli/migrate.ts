import type { Command } from 'commander';
import { findMigrationStatus, migrate } from '../store/migrate.ts';
import { openPool } from '../store/pool.ts';
import { CheckFailed } from './check-failed.ts';
import { type CommonOptions, inContext, withCommonOptions } from './context.ts';

/** `duepost migrate` and `duepost migrate status`. */
export function addMigrate(program: Command): void {
  const command = withCommonOptions(program.command('migrate'))
    .description('bring the database up to this version')
    .action((options: CommonOptions) =>
      inContext(
        options,
        async ({ config, log, print }) => {
          const applied = await migrate(config.database, log);
          print({ applied }, () =>
            applied.length === 0
              ? 'the database is up to date'
              : applied.map((name) => `applied ${name}`).join('\n'),
          );
        },
        ['database'],
      ),
    );
  withCommonOptions(command.command('status'))
    .description('what is applied and what is pending; exit code 1 if anything is')
    .action((_: unknown, self: Command) =>
      inContext(
        self.optsWithGlobals(),
        async ({ config, log, scope, print }) => {
          const pool = scope.own(openPool(config.database, log), (p) => p.end());
          const status = await findMigrationStatus(pool);
          print(status, () =>
            [
              ...status.applied.map((name) => `applied  ${name}`),
              ...status.pending.map((name) => `pending  ${name}`),
              ...status.unknown.map((name) => `unknown  ${name} (of a newer version)`),
            ].join('\n'),
          );
          if (status.pending.length + status.unknown.length > 0) throw new CheckFailed();
        },
        ['database'],
      ),
    );
}
