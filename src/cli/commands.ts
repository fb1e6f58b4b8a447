import type { Command } from 'commander';
import { connectPublisher } from '../broker/publisher.ts';
import {
  countRejected,
  peekRejected,
  type RejectedCommand,
  replayRejected,
} from '../broker/replay-rejected.ts';
import { readWhole } from './arguments.ts';
import { type CommonOptions, inContext, withCommonOptions, withExamples } from './context.ts';
import { formatTable } from './print.ts';

interface ReplayOptions extends CommonOptions {
  readonly dryRun?: boolean;
  readonly limit?: number;
}

const SHOWN = 20;

/** `duepost commands replay-rejected`. */
export function addCommands(program: Command): void {
  const group = program.command('commands').description('commands that other services sent over AMQP');
  const replay = withCommonOptions(group.command('replay-rejected'))
    .description(
      'put rejected commands back to where they came in, each as it was; for when what was wrong has been mended',
    )
    .option('--dry-run', `only show what waits and why it was rejected (the ${SHOWN} oldest, or --limit)`)
    .option('--limit <n>', 'how many at most, oldest first; all if left out', readWhole(1, 1_000_000))
    .action((options: ReplayOptions) =>
      inContext(options, async ({ config, log, scope, print }) => {
        const commands: RejectedCommand[] = [];
        const onCommand = (command: RejectedCommand): void => void commands.push(command);
        const waiting = await countRejected(config.broker);
        if (options.dryRun === true) {
          await peekRejected(config.broker, { limit: options.limit ?? SHOWN, onCommand });
          print({ waiting, replayed: 0, dry_run: true, commands: commands.map(toView) }, () =>
            waiting === 0 ? 'no command waits' : `${format(commands)}\n${waiting} wait`,
          );
          return;
        }
        const publisher = await scope.own(connectPublisher(config.broker, log), (p) => p.close());
        const limit = options.limit ?? Number.POSITIVE_INFINITY;
        const replayed = await replayRejected(config.broker, publisher, { limit, onCommand });
        print({ waiting, replayed, dry_run: false, commands: commands.map(toView) }, () =>
          waiting === 0 ? 'no command waits' : `${format(commands)}\n${replayed} of ${waiting} put back`,
        );
      }),
    );
  withExamples(
    replay,
    'duepost commands replay-rejected --dry-run',
    'duepost commands replay-rejected --limit 1',
    'duepost commands replay-rejected',
  );
}

function toView({ routingKey, messageId, error, bytes }: RejectedCommand): Record<string, unknown> {
  return { routing_key: routingKey, message_id: messageId ?? null, error: error ?? null, bytes };
}

function format(commands: readonly RejectedCommand[]): string {
  const rows = commands.map((c) => [c.routingKey, c.messageId, c.bytes, c.error]);
  return formatTable(['command', 'message_id', 'bytes', 'why'], rows);
}
