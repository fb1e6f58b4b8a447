import type { Command } from 'commander';
import { describeConfig } from '../runtime/config.ts';
import { SETTINGS } from '../runtime/config-settings.ts';
import { type CommonOptions, inContext, withCommonOptions, withExamples } from './context.ts';
import { formatTable } from './print.ts';

/** `duepost config` and `duepost config check`. */
export function addConfig(program: Command): void {
  const command = withCommonOptions(program.command('config'))
    .description('the configuration in force, with secrets masked')
    .action((options: CommonOptions) =>
      inContext(
        options,
        ({ config, print }) => {
          const values = describeConfig(config);
          print(values, () => formatTable(['setting', 'value', 'variable'], toRows(values)));
        },
        [],
      ),
    );
  withExamples(command, 'duepost config', 'duepost config --json | jq .egress', 'duepost config check');
  withCommonOptions(command.command('check'))
    .description('whether everything could start with it; exit code 1 naming everything that is wrong')
    .action((_: unknown, self: Command) =>
      inContext(self.optsWithGlobals(), ({ config, print }) => {
        print({ ok: true, env: config.env }, () => `the configuration for ${config.env} is in order`);
      }),
    );
}

function toRows(values: Record<string, unknown>): unknown[][] {
  return Object.entries(SETTINGS).map(([name, { env }]) => {
    const [section, key] = name.split('.') as [string, string | undefined];
    const value = values[section];
    return [name, key === undefined ? value : (value as Record<string, unknown>)[key], env];
  });
}
