import type { Command } from 'commander';
import { goLive } from '../../pipeline/shadow/go-live.ts';
import { shadowReportView } from '../../pipeline/shadow/view.ts';
import { endpointView } from '../../pipeline/views.ts';
import { openCalendars } from '../../roles/parts.ts';
import { readTime } from '../arguments.ts';
import { complain } from '../complain.ts';
import { type CommonOptions, inContext, withCommonOptions, withExamples } from '../context.ts';
import { openDatabase } from '../parts.ts';
import { readExpected } from '../shadow/files.ts';
import { formatReport } from '../shadow/report.ts';

interface GoLiveOptions extends CommonOptions {
  readonly from?: Date;
  readonly to?: Date;
  readonly expected?: string;
  readonly force?: boolean;
  readonly reason?: string;
}

/** `duepost endpoint go-live`. */
export function addEndpointGoLive(group: Command): void {
  const command = withCommonOptions(group.command('go-live <endpoint>'))
    .description(
      'end shadow mode, if its report passes: what was recorded stays ended, what is still due is sent',
    )
    .option('--from <time>', 'the start of the report; its first day in shadow mode if left out', readTime)
    .option('--to <time>', 'the end of the report; the start of today (UTC) if left out', readTime)
    .option('--expected <file>', "the old system's list, as for shadow report")
    .option('--force', 'also when the report has not passed; needs a --reason')
    .option('--reason <text>', 'for the audit trail')
    .action((reference: string, options: GoLiveOptions) => {
      const { from, to, force = false, reason } = options;
      if (force && (reason ?? '').trim() === '') {
        command.error('--force needs a --reason, for the audit trail');
      }
      return inContext(options, async (context) => {
        const { config, actor, print } = context;
        const expected = options.expected === undefined ? undefined : await readExpected(options.expected);
        const { endpoint, report } = await goLive(
          { endpoint: reference, from, to, expected, force },
          { actor, ...(reason === undefined ? {} : { reason }) },
          {
            pool: await openDatabase(context),
            calendars: openCalendars(config),
            shadowAll: config.shadow.all,
          },
        );
        print({ ...endpointView(endpoint), report: shadowReportView(report) }, () =>
          [formatReport(report), '', `${endpoint.name} is live`].join('\n'),
        );
        if (config.shadow.all) {
          complain('shadow.all is set: workers with this configuration still send nothing, to any endpoint');
        }
      });
    });
  withExamples(
    command,
    'duepost endpoint go-live customer-notices --from 2026-12-21 --to 2026-12-28 --expected old.csv',
    "duepost endpoint go-live trial --force --reason 'a test endpoint without renewals'",
  );
}
