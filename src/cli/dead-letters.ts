import type { Command } from 'commander';
import { findEndpointId } from '../pipeline/endpoint-reference.ts';
import type { ReplayReport } from '../pipeline/operate/deliveries.ts';
import { deadLetterView } from '../pipeline/views.ts';
import { type DeadLetter, type DeadLetterFilter, listDeadLetters } from '../store/dead-letters.ts';
import type { Pool } from '../store/pool.ts';
import { readTime, readWhole } from './arguments.ts';
import { more } from './audit/show.ts';
import { CheckFailed } from './check-failed.ts';
import { complain } from './complain.ts';
import { type CommonOptions, type Context, inContext, withCommonOptions, withExamples } from './context.ts';
import { startProgress } from './import/progress.ts';
import { openDatabase, openDeliveryOperator } from './parts.ts';
import { formatFields, formatTable } from './print.ts';
import { by } from './reason.ts';

interface FilterOptions extends CommonOptions {
  readonly endpoint?: string;
  readonly deadReason?: string;
  readonly contract?: string;
  readonly deadAfter?: Date;
  readonly deadBefore?: Date;
}

interface ReplayOptions extends FilterOptions {
  readonly all?: boolean;
  readonly dryRun?: boolean;
  readonly force?: boolean;
  readonly reason?: string;
}

/** `duepost dead-letters list|replay`. */
export function addDeadLetters(program: Command): void {
  const group = program.command('dead-letters').description('deliveries that ended without success');
  const list = withFilter(group.command('list'))
    .description('dead letters and why they are, the newest delivery first')
    .option('--limit <n>', 'how many at most', readWhole(1, 100_000), 50)
    .action((options: FilterOptions & { readonly limit: number }) =>
      inContext(options, async (context) => {
        const pool = await openDatabase(context);
        const page = { before: undefined, limit: options.limit + 1 };
        const found = await listDeadLetters(pool, await readFilter(pool, options), page);
        const letters = found.slice(0, options.limit);
        const hasMore = found.length > letters.length;
        const answer = { data: letters.map(deadLetterView), next_cursor: null, has_more: hasMore };
        context.print(answer, () => formatTable(HEAD, letters.map(toRow)) + more(hasMore));
      }),
    );
  withExamples(
    list,
    'duepost dead-letters list',
    'duepost dead-letters list --dead-reason attempts_exhausted',
  );
  const replay = withFilter(group.command('replay'))
    .description(
      'send them again, each in a new cycle with the same key and bytes; without a filter, --all says so',
    )
    .option('--all', 'all there are')
    .option('--dry-run', 'only count')
    .option('--force', 'also those whose deadline has passed')
    .option('--reason <text>', 'why; it is kept in the audit trail')
    .action((options: ReplayOptions, self: Command) =>
      inContext(options, (context) => {
        const isNarrowed = Object.values(filterOf(options, undefined)).some((value) => value !== undefined);
        if (!isNarrowed && options.endpoint === undefined && options.all !== true) {
          self.error('say which: a filter, or --all', { exitCode: 2 });
        }
        return replayAll(context, options);
      }),
    );
  withExamples(
    replay,
    'duepost dead-letters replay --endpoint customer-notices --dry-run',
    'duepost dead-letters replay --endpoint customer-notices --dead-after 2027-03-01 --reason "receiver mended"',
    'duepost dead-letters replay --all',
  );
}

function withFilter(command: Command): Command {
  return withCommonOptions(command)
    .option('--endpoint <endpoint>', 'to this one, by id or name')
    .option(
      '--dead-reason <reason>',
      'terminal_response, attempts_exhausted, deadline_passed or endpoint_gone',
    )
    .option('--contract <ref>', 'about this contract')
    .option('--dead-after <time>', 'dead since then', readTime)
    .option('--dead-before <time>', 'dead before', readTime);
}

async function readFilter(pool: Pool, options: FilterOptions): Promise<DeadLetterFilter> {
  return filterOf(options, await findEndpointId(pool, options.endpoint, '--endpoint'));
}

function filterOf(options: FilterOptions, endpointId: string | undefined): DeadLetterFilter {
  return {
    endpointId,
    deadReason: options.deadReason,
    contractRef: options.contract,
    deadAfter: options.deadAfter,
    deadBefore: options.deadBefore,
  };
}

/** Counts first, always; Ctrl-C ends it after the page in hand. */
async function replayAll(context: Context, options: ReplayOptions): Promise<void> {
  const { operator, pool } = await openDeliveryOperator(context);
  const filter = await readFilter(pool, options);
  const stopping = new AbortController();
  const stop = (): void => stopping.abort();
  process.once('SIGINT', stop).once('SIGTERM', stop);
  const common = { force: options.force === true, signal: stopping.signal };
  const expected = await operator.replay(filter, { ...common, dryRun: true }, by(context, options));
  const skipped = expected.skipped.deadlinePassed + expected.skipped.endpointDisabled;
  if (options.dryRun === true) {
    context.print(toJson(expected, true), () =>
      format({ ...expected, replayed: expected.matched - skipped }, true),
    );
    return;
  }
  if (!context.json) complain(`${expected.matched} match, ${expected.matched - skipped} can be replayed`);
  const progress = startProgress(expected.matched, 'replayed');
  const onProgress = (report: ReplayReport): void => {
    const left = report.skipped.deadlinePassed + report.skipped.endpointDisabled;
    progress.update(report.replayed + left, report.replayed);
  };
  const report = await operator
    .replay(filter, { ...common, dryRun: false, onProgress }, by(context, options))
    .finally(() => progress.stop());
  process.off('SIGINT', stop).off('SIGTERM', stop);
  context.print(toJson(report, false), () => format(report, false));
  if (!report.complete) throw new CheckFailed();
}

function toJson(
  { matched, replayed, skipped, complete }: ReplayReport,
  dryRun: boolean,
): Record<string, unknown> {
  return {
    matched,
    replayed,
    dry_run: dryRun,
    skipped: { endpoint_disabled: skipped.endpointDisabled, deadline_passed: skipped.deadlinePassed },
    complete,
  };
}

function format({ matched, replayed, skipped, complete }: ReplayReport, dryRun: boolean): string {
  return formatFields({
    matched,
    [dryRun ? 'would be replayed' : 'replayed']: replayed,
    'endpoint disabled':
      skipped.endpointDisabled === 0 ? undefined : `${skipped.endpointDisabled}  (resume it first)`,
    'deadline passed':
      skipped.deadlinePassed === 0
        ? undefined
        : `${skipped.deadlinePassed}  (--force sends them nevertheless)`,
    ended: complete ? undefined : 'early; what is left still matches',
  });
}

const HEAD = ['delivery_id', 'reason', 'last answer', 'attempts', 'ended', 'contract', 'endpoint'];

function toRow({ delivery, lastStatus, lastError }: DeadLetter): unknown[] {
  return [
    delivery.deliveryId,
    delivery.deadReason,
    lastStatus ?? lastError,
    delivery.attempt,
    delivery.endedAt,
    delivery.contractRef,
    delivery.endpointName,
  ];
}
