import { writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import { reportShadow, type ShadowReport } from '../../pipeline/shadow/report.ts';
import { shadowReportView, summarize } from '../../pipeline/shadow/view.ts';
import { openCalendars } from '../../roles/parts.ts';
import { readTime } from '../arguments.ts';
import { CheckFailed } from '../check-failed.ts';
import { type CommonOptions, inContext, withCommonOptions, withExamples } from '../context.ts';
import { openDatabase } from '../parts.ts';
import { formatFields, formatTable } from '../print.ts';
import { formatCsv, readExpected } from './files.ts';
import { formatHtml } from './html.ts';

interface ReportOptions extends CommonOptions {
  readonly from: Date;
  readonly to: Date;
  readonly expected?: string;
  readonly endpoint?: string;
  readonly csv?: string;
  readonly html?: string;
}

/** How many differences a terminal shows. */
const SHOWN = 50;

/** `duepost shadow report`. */
export function addShadow(program: Command): void {
  const group = program.command('shadow').description('what would have been sent, before anything is');
  const report = withCommonOptions(group.command('report'))
    .description(
      'compare what shadow mode did with the calendar and the old list, delivery by delivery; exit code 1 if it has not passed',
    )
    .requiredOption('--from <time>', 'the start of the period; a date begins at midnight UTC', readTime)
    .requiredOption('--to <time>', 'its end, which is no part of it', readTime)
    .option(
      '--expected <file>',
      "the old system's list: CSV with contract_ref, due_at and perhaps delivery_id",
    )
    .option('--endpoint <endpoint>', 'only this one; else every endpoint in shadow mode')
    .option('--csv <file>', 'write every row there')
    .option('--html <file>', 'write a page to read and print there')
    .action((options: ReportOptions) =>
      inContext(options, async (context) => {
        const { config, print } = context;
        const { from, to, endpoint } = options;
        const expected = options.expected === undefined ? undefined : await readExpected(options.expected);
        const found = await reportShadow(
          { from, to, endpoint, expected },
          {
            db: await openDatabase(context),
            calendars: openCalendars(config),
            shadowAll: config.shadow.all,
          },
        );
        if (options.csv !== undefined) writeFileSync(options.csv, formatCsv(found));
        if (options.html !== undefined) writeFileSync(options.html, formatHtml(found));
        print(shadowReportView(found), () => formatReport(found));
        if (!found.passed) throw new CheckFailed();
      }),
    );
  withExamples(
    report,
    'duepost shadow report --from 2026-12-21 --to 2026-12-28 --expected old.csv --html report.html',
    'duepost shadow report --from 2026-12-21 --to 2026-12-28 --endpoint customer-notices --json',
  );
}

/** A report for a terminal. */
export function formatReport(report: ShadowReport): string {
  const different = report.rows.filter((row) => row.findings.length > 0);
  const shown = different.slice(0, SHOWN);
  return [
    formatFields({
      period: `${report.from.toISOString()} to ${report.to.toISOString()}, ${report.coverage.dates.length} whole days`,
      endpoints: report.endpoints.map((e) => e.name),
      'compared with': report.hasExpected ? 'the calendar and the old list' : 'the calendar alone',
      ...summarize(report.rows),
    }),
    '',
    formatTable(
      ['jurisdiction', 'deliveries', 'weekend', 'holidays', 'open days with nothing due'],
      report.coverage.jurisdictions.map((j) => [
        `${j.jurisdiction} (${j.timeZone})`,
        j.deliveries,
        j.weekendDates,
        j.holidays.map((h) => `${h.date} ${h.name}`),
        j.idleDates,
      ]),
    ),
    ...(shown.length === 0
      ? []
      : [
          '',
          formatTable(
            ['contract', 'delivery', 'due', 'what'],
            shown.map(({ ours, expected, findings }) => [
              ours?.contractRef ?? expected?.contractRef,
              ours?.deliveryId,
              ours?.dueAt ?? expected?.dueAt,
              findings.map((f) => `${f.kind}: ${f.note}`).join('; '),
            ]),
          ),
        ]),
    ...(shown.length < different.length
      ? [`… and ${different.length - shown.length} more: --csv or --json has all of them`]
      : []),
    '',
    report.passed ? 'passed' : ['not passed:', ...report.reasons.map((r) => `  ${r}`)].join('\n'),
  ].join('\n');
}
