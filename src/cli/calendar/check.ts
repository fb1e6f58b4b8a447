import type { Command } from 'commander';
import { checkCalendarDrift, type Drift, type DriftReport } from '../../pipeline/timing/calendar-drift.ts';
import { openCalendars } from '../../roles/parts.ts';
import { CheckFailed } from '../check-failed.ts';
import { type CommonOptions, inContext, withCommonOptions, withExamples } from '../context.ts';
import { type Progress, startProgress } from '../import/progress.ts';
import { NOBODY, openAnnouncer, openDatabase } from '../parts.ts';
import { formatTable } from '../print.ts';

/** Fewer are done before anybody has read it. */
const WORTH_A_BAR = 1_000;

interface CheckOptions extends CommonOptions {
  readonly apply?: boolean;
  readonly reason?: string;
}

/** `duepost calendar check`: what would move under today's calendars and time zone data, and moves it when told to. */
export function addCalendarCheck(group: Command): void {
  const command = withCommonOptions(group.command('check'))
    .description(
      'compute again what has not been attempted, under the calendars and time zone data of today; exit code 1 if anything differs and stays',
    )
    .option('--apply', 'move what differs, with an entry in the audit trail each')
    .option('--reason <text>', 'for the audit trail; needed by --apply')
    .action((options: CheckOptions) => {
      if (options.apply === true && (options.reason ?? '').trim() === '') {
        command.error('--apply needs a --reason, for the audit trail');
      }
      return inContext(options, async (context) => {
        const { config, actor, print } = context;
        const { apply = false, reason = '' } = options;
        let progress: Progress | undefined;
        const report = await checkCalendarDrift({
          pool: await openDatabase(context),
          announcer: apply ? await openAnnouncer(context) : NOBODY,
          calendars: openCalendars(config),
          timeoutMs: config.egress.timeoutMs,
          apply: apply ? { actor, reason } : undefined,
          onProgress: (checked, total) => {
            if (total < WORTH_A_BAR) return;
            progress ??= startProgress(total, 'reminders');
            progress.update(checked, checked);
          },
        });
        progress?.stop();
        print(toJson(report, apply), () => toText(report, apply));
        if (report.problems.length > 0 || (!apply && report.drifted.length > 0)) throw new CheckFailed();
      });
    });
  withExamples(
    command,
    'duepost calendar check',
    "duepost calendar check --apply --reason 'Poland: Christmas Eve is a public holiday from 2025 on'",
  );
}

function toJson({ checked, drifted, problems }: DriftReport, applied: boolean): Record<string, unknown> {
  const moves = drifted.map((d) => ({
    reminder_id: d.reminderId,
    delivery_id: d.deliveryId,
    contract_ref: d.contractRef,
    jurisdiction: d.jurisdiction,
    from: { due_at: d.from.dueAt, deadline_at: d.from.deadlineAt },
    to: { due_at: d.to.dueAt, deadline_at: d.to.deadlineAt },
    why: d.why,
    ...(d.outcome === undefined ? {} : { outcome: d.outcome }),
  }));
  return {
    checked,
    applied,
    moves,
    problems: problems.map(({ reminderId, contractRef, code, detail }) => ({
      reminder_id: reminderId,
      contract_ref: contractRef,
      code,
      detail,
    })),
  };
}

function toText({ checked, drifted, problems }: DriftReport, applied: boolean): string {
  const count = (amount: number): string => `${amount} reminder${amount === 1 ? '' : 's'}`;
  const moved = drifted.filter((d) => d.outcome === 'moved').length;
  const summary = applied
    ? `${count(checked)} checked, ${moved} moved`
    : `${count(checked)} checked, ${drifted.length} would move`;
  return [
    ...(drifted.length === 0
      ? []
      : [formatTable(['contract', 'reminder', 'time', 'was', 'is', 'why'], drifted.map(toRow)), '']),
    ...(problems.length === 0
      ? []
      : [
          formatTable(
            ['contract', 'reminder', 'stays as it is, because'],
            problems.map((p) => [p.contractRef, p.reminderId, `${p.code}: ${p.detail}`]),
          ),
          '',
        ]),
    `${summary}${problems.length === 0 ? '' : `, ${problems.length} cannot be computed or moved`}`,
    ...(applied || drifted.length === 0 ? [] : ['to move them: duepost calendar check --apply --reason …']),
  ].join('\n');
}

function toRow(d: Drift): unknown[] {
  const member = d.from.dueAt.getTime() === d.to.dueAt.getTime() ? 'deadlineAt' : 'dueAt';
  const why = d.why.map((w) => w.note).join('; ');
  return [
    d.contractRef,
    d.reminderId,
    member === 'dueAt' ? 'due' : 'deadline',
    d.from[member],
    d.to[member],
    d.outcome === 'unchanged' ? `${why} (not moved: it was sent, ended or changed meanwhile)` : why,
  ];
}
