import { type Command, InvalidArgumentError } from 'commander';
import { readReminder } from '../../pipeline/accept/read-requests.ts';
import { createReminderAcceptor, type ReminderAcceptor } from '../../pipeline/accept/reminders.ts';
import { reminderView } from '../../pipeline/views.ts';
import { openCalendars } from '../../roles/parts.ts';
import type { Reminder } from '../../store/reminders.ts';
import { readPayload } from '../arguments.ts';
import { type CommonOptions, type Context, inContext, withCommonOptions, withExamples } from '../context.ts';
import { NOBODY, openAnnouncer, openDatabase } from '../parts.ts';
import { present } from '../present.ts';
import { formatFields } from '../print.ts';
import { COLUMNS } from './csv.ts';
import { formatOf } from './import-file.ts';
import { remindFile } from './remind-file.ts';
import { reminderKey } from './reminder-key.ts';

interface RemindOptions extends CommonOptions {
  readonly contract?: string;
  readonly endpoint?: string;
  readonly renewalDate?: string;
  readonly notice?: string;
  readonly jurisdiction?: string;
  readonly zone?: string;
  readonly deadline?: string;
  readonly deadlineAt?: string;
  readonly type?: string;
  readonly payload?: unknown;
  readonly key?: string;
  readonly file?: string;
  readonly dryRun?: boolean;
  readonly report?: string;
}

/** `duepost remind`: one reminder, or a file of them. */
export function addRemind(program: Command): void {
  const command = withCommonOptions(program.command('remind'))
    .description('schedule a renewal reminder, or those of a file')
    .option('--contract <ref>', "the contract's reference")
    .option('--endpoint <endpoint>', 'where to send it, by id or name')
    .option('--renewal-date <date>', 'YYYY-MM-DD')
    .option('--notice <period>', 'P30D, P1M, P2W, or P10B for business days')
    .option('--jurisdiction <code>', 'DE, DE-BY, US-CA, …, or the name of a calendar file')
    .option('--zone <zone>', 'an IANA time zone, where the jurisdiction has several')
    .option('--deadline <period>', 'how long before the renewal date the deadline is; its start if left out')
    .option('--deadline-at <time>', 'the deadline itself, as RFC 3339')
    .option('--type <type>', 'renewal.reminder if left out')
    .option('--payload <json>', 'any JSON; @file reads it from a file', readPayload)
    .option('--key <key>', 'idempotency key; made of contract and renewal date if left out')
    .option('--file <file>', 'many at once: .csv with a header line, or .jsonl', readFileName)
    .option('--dry-run', 'show due dates and refusals, store nothing')
    .option('--report <file>', 'with --file: one line of JSON for each refused row')
    .action((options: RemindOptions, self: Command) =>
      inContext(options, (context) => {
        if (options.file !== undefined) return importReminders(context, options, self);
        return remindOne(context, options, self);
      }),
    );
  command.addHelpText('after', FILES);
  withExamples(
    command,
    'duepost remind --contract pol-7781 --endpoint customer-notices --renewal-date 2027-03-31 --notice P30D --jurisdiction DE-BY',
    'duepost remind --file renewals.csv --dry-run',
    'duepost remind --file renewals.csv --endpoint customer-notices --report refused.jsonl',
  );
}

const FILES = `
Files: columns (CSV) or members (JSON Lines) are
  ${COLUMNS.slice(0, 6).join(', ')},
  ${COLUMNS.slice(6).join(', ')}
Options given beside --file hold for every row that leaves them out. A refused row stops no other. A row without a key
has one made of contract and renewal date: running a file again schedules nothing twice, so after an interruption run
the same command again.`;

async function remindOne(context: Context, options: RemindOptions, self: Command): Promise<void> {
  for (const name of ['contract', 'endpoint', 'renewalDate', 'notice', 'jurisdiction'] as const) {
    if (options[name] !== undefined) continue;
    const flag = self.options.find((option) => option.attributeName() === name)?.flags;
    self.error(`option '${flag}' is missing, or --file`, { exitCode: 2 });
  }
  if (options.report !== undefined) self.error('--report goes with --file', { exitCode: 2 });
  const { config, actor } = context;
  const request = readReminder(toBody(options), {
    outerKey: reminderKey(options.contract ?? '', options.renewalDate ?? ''),
    actor,
    maxPayloadBytes: config.limits.maxPayloadBytes,
  });
  const acceptor = await openReminders(context, options.dryRun === true);
  if (options.dryRun === true) {
    const { dueAt, deadlineAt, timeZone, lateStart } = await acceptor.plan(request);
    const plan = { due_at: dueAt, deadline_at: deadlineAt, time_zone: timeZone, late_start: lateStart };
    context.print({ dry_run: true, ...plan }, () => `${formatFields(plan)}\nnothing was stored`);
    return;
  }
  const { reminder, duplicate } = await acceptor.schedule(request);
  context.print(reminderView(reminder, duplicate), () => format(reminder, duplicate));
}

function importReminders(context: Context, options: RemindOptions, self: Command): Promise<void> {
  if (options.key !== undefined) self.error('--key is for one reminder: in a file each row has its own');
  return remindFile(context, {
    file: options.file ?? '',
    defaults: toBody(options),
    dryRun: options.dryRun === true,
    report: options.report,
    openAcceptor: () => openReminders(context, options.dryRun === true),
  });
}

async function openReminders(context: Context, dryRun: boolean): Promise<ReminderAcceptor> {
  const { config, scope } = context;
  const db = await openDatabase(context);
  const announcer = dryRun ? NOBODY : await openAnnouncer(context);
  const calendars = openCalendars(config);
  return scope.own(
    createReminderAcceptor({ db, announcer, calendars, timeoutMs: config.egress.timeoutMs }),
    (a) => a.close(),
  );
}

function readFileName(name: string): string {
  if (formatOf(name) !== undefined) return name;
  throw new InvalidArgumentError('Its name must end in .csv, .jsonl or .ndjson.');
}

function toBody(options: RemindOptions): Record<string, unknown> {
  return present({
    idempotency_key: options.key,
    contract_ref: options.contract,
    endpoint: options.endpoint,
    renewal_date: options.renewalDate,
    notice_period: options.notice,
    jurisdiction: options.jurisdiction,
    time_zone: options.zone,
    deadline: options.deadline,
    deadline_at: options.deadlineAt,
    type: options.type,
    payload: options.payload,
  });
}

function format(reminder: Reminder, duplicate: boolean): string {
  return formatFields({
    reminder: `${reminder.reminderId}${duplicate ? '  (scheduled before)' : ''}`,
    delivery: reminder.deliveryId,
    contract: reminder.contractRef,
    due: `${reminder.dueAt.toISOString()}  (${reminder.timeZone})${reminder.lateStart ? '  late start' : ''}`,
    deadline: reminder.deadlineAt,
    state: reminder.state,
    key: reminder.idempotencyKey,
  });
}
