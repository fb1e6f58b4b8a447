import type { Command } from 'commander';
import { formatDefinitions } from '../broker/definitions.ts';
import { applyTopology } from '../broker/topology-apply.ts';
import { checkTopology } from '../broker/topology-check.ts';
import { resetWatermark } from '../store/due.ts';
import { openPool } from '../store/pool.ts';
import { CheckFailed } from './check-failed.ts';
import { type CommonOptions, inContext, withCommonOptions } from './context.ts';

/** `duepost topology apply|check|export`. */
export function addTopology(program: Command): void {
  const command = program.command('topology').description('exchanges, queues and bindings at the broker');
  withCommonOptions(command.command('apply'))
    .description('declare everything; what exists with other arguments is left alone and named')
    .option(
      '--refeed',
      'after a purge or the loss of the broker: publish again every wake-up within the horizon',
    )
    .action((options: CommonOptions & { refeed?: boolean }) =>
      inContext(
        options,
        async ({ config, log, print, scope }) => {
          const differing = await applyTopology(config.broker, log);
          if (options.refeed === true) {
            await resetWatermark(scope.own(openPool(config.database, log), (pool) => pool.end()));
          }
          print({ differing }, () =>
            differing.length === 0 ? 'the topology is in place' : differing.join('\n'),
          );
          if (differing.length > 0) throw new CheckFailed();
        },
        options.refeed === true ? ['broker', 'database'] : ['broker'],
      ),
    );
  withCommonOptions(command.command('check'))
    .description('compare the broker with what it should have; exit code 1 naming each object that differs')
    .action((options: CommonOptions) =>
      inContext(
        options,
        async ({ config, print }) => {
          const differing = await checkTopology(config.broker);
          print({ differing }, () =>
            differing.length === 0 ? 'the topology is as it should be' : differing.join('\n'),
          );
          if (differing.length > 0) throw new CheckFailed();
        },
        ['broker'],
      ),
    );
  withCommonOptions(command.command('export'))
    .description('definitions.json, as the broker loads it')
    .action((options: CommonOptions) =>
      inContext(
        options,
        async ({ config }) => {
          process.stdout.write(formatDefinitions(config.broker.prefix));
        },
        [],
      ),
    );
}
