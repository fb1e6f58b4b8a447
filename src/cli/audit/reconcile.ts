import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { parse } from 'csv-parse/sync';
import type { ExpectedReminder } from '../../domain/audit/completeness.ts';
import { type Completeness, reconcilePeriod } from '../../pipeline/evidence/completeness.ts';
import { readTime } from '../arguments.ts';
import { CheckFailed } from '../check-failed.ts';
import { type CommonOptions, inContext, withCommonOptions, withExamples } from '../context.ts';
import { openDatabase } from '../parts.ts';
import { formatTable } from '../print.ts';

interface ReconcileOptions extends CommonOptions {
  readonly from: Date;
  readonly to: Date;
  readonly expected?: string;
}

/** `duepost audit reconcile`. */
export function addAuditReconcile(group: Command): void {
  const command = withCommonOptions(group.command('reconcile'))
    .description(
      'whether every reminder that was due in a period has exactly one outcome; exit code 1 naming each that has not',
    )
    .requiredOption('--from <time>', 'from this instant, or day in UTC', readTime)
    .requiredOption('--to <time>', 'before this instant, or day in UTC', readTime)
    .option(
      '--expected <file>',
      'who must have been reminded: CSV with contract_ref, and renewal_date if wanted',
    )
    .action((options: ReconcileOptions, self: Command) => {
      if (options.from >= options.to) self.error('error: --from must lie before --to', { exitCode: 2 });
      return inContext(options, async (context) => {
        const expected = options.expected === undefined ? undefined : readExpected(options.expected);
        const result = await reconcilePeriod(await openDatabase(context), options, expected);
        context.print(toView(result, options), () => describe(result));
        if (!result.complete) throw new CheckFailed();
      });
    });
  withExamples(
    command,
    'duepost audit reconcile --from 2027-03-01 --to 2027-04-01',
    'duepost audit reconcile --from 2027-03-01 --to 2027-04-01 --expected contracts.csv',
  );
}

/** Throws for a file that cannot be read, or has no column contract_ref. */
function readExpected(file: string): ExpectedReminder[] {
  const rows = parse(readFileSync(file, 'utf8'), {
    columns: true,
    trim: true,
    bom: true,
    skip_empty_lines: true,
    delimiter: [',', ';', '\t'],
  }) as Record<string, string | undefined>[];
  return rows.map((row, i) => {
    const contractRef = row['contract_ref'];
    if (contractRef === undefined || contractRef === '') {
      throw new Error(`${file}, row ${i + 1}: there is no contract_ref`);
    }
    return { contractRef, renewalDate: row['renewal_date'] || undefined };
  });
}

function toView(result: Completeness, { from, to }: ReconcileOptions): Record<string, unknown> {
  return {
    from,
    to,
    complete: result.complete,
    reminders: result.reminders,
    outcomes: result.outcomes,
    gaps: result.gaps.map((g) => ({
      kind: g.kind,
      delivery_id: g.deliveryId ?? null,
      contract_ref: g.contractRef,
      what: g.what,
    })),
    not_delivered: result.notDelivered,
    dropped: result.dropped.map(({ month, at }) => ({ month, at })),
  };
}

function describe(result: Completeness): string {
  const outcomes = Object.entries(result.outcomes).map(([state, n]) => `${n} ${state.replaceAll('_', ' ')}`);
  return [
    result.complete
      ? `Complete: each of ${result.reminders} reminders has exactly one outcome.`
      : `NOT complete: ${result.gaps.length} of these do not add up.`,
    `${result.reminders} reminders were due: ${outcomes.join(', ') || 'none'}.`,
    ...(result.gaps.length === 0
      ? []
      : [
          formatTable(
            ['gap', 'delivery_id', 'contract', 'what'],
            result.gaps.map((g) => [g.kind, g.deliveryId, g.contractRef, g.what]),
          ),
        ]),
    ...(result.notDelivered.length === 0 ? [] : ['Ended without being delivered:', ...result.notDelivered]),
    ...result.dropped.map(
      (d) => `Reminders made in ${d.month} were dropped by retention: they cannot be told about.`,
    ),
  ].join('\n');
}
