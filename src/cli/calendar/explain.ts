import type { Command } from 'commander';
import { explainSteps } from '../../domain/calendar/calendars.ts';
import { openCalendars } from '../../roles/parts.ts';
import { readTime } from '../arguments.ts';
import { type CommonOptions, inContext, withCommonOptions, withExamples } from '../context.ts';

interface ExplainOptions extends CommonOptions {
  readonly renewalDate: string;
  readonly notice: string;
  readonly jurisdiction: string;
  readonly zone?: string;
  readonly deadline?: string;
  readonly deadlineAt?: Date;
}

/** `duepost calendar …`; gives the group, for further commands. */
export function addCalendar(program: Command): Command {
  const group = program
    .command('calendar')
    .description('business calendars, and why a reminder is due when it is');
  const explain = withCommonOptions(group.command('explain'))
    .description('the steps from the renewal date to the moment a reminder is due; nothing is stored')
    .requiredOption('--renewal-date <date>', 'YYYY-MM-DD')
    .requiredOption('--notice <period>', 'P30D, P1M, P2W, or P10B for business days')
    .requiredOption('--jurisdiction <code>', 'DE, DE-BY, US-CA, …, or the name of a calendar file')
    .option('--zone <zone>', 'an IANA time zone, where the jurisdiction has several')
    .option('--deadline <period>', 'how long before the renewal date the deadline is')
    .option('--deadline-at <time>', 'the deadline itself', readTime)
    .action((options: ExplainOptions) =>
      inContext(
        options,
        ({ config, print }) => {
          const due = openCalendars(config).computeDue({
            renewalDate: options.renewalDate,
            noticePeriod: options.notice,
            jurisdiction: options.jurisdiction,
            timeZone: options.zone,
            deadline: options.deadline,
            deadlineAt: options.deadlineAt,
          });
          const { dueAt, deadlineAt, timeZone, steps, proof } = due;
          print({ due_at: dueAt, deadline_at: deadlineAt, time_zone: timeZone, steps, proof }, () =>
            [
              ...explainSteps(due),
              '',
              `due       ${dueAt.toISOString()}`,
              `deadline  ${deadlineAt.toISOString()}`,
              `by        ${proof.holiday_library}, tz ${proof.tz_version}, calendar ${proof.calendar_code} (${proof.calendar_sha256.slice(0, 12)})`,
            ].join('\n'),
          );
        },
        [],
      ),
    );
  withExamples(
    explain,
    'duepost calendar explain --renewal-date 2027-03-31 --notice P30D --jurisdiction DE-BY',
    'duepost calendar explain --renewal-date 2027-03-31 --notice P10B --jurisdiction US --zone America/Denver',
  );
  return group;
}
