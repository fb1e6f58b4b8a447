import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import { readCancel, readReschedule } from '../pipeline/accept/read-requests.ts';
import type { Rescheduler } from '../pipeline/timing/reschedule.ts';
import { reminderView } from '../pipeline/views.ts';
import { openRescheduler } from '../roles/parts.ts';
import { type CommonOptions, type Context, inContext, withCommonOptions, withExamples } from './context.ts';
import { openAnnouncer, openDatabase } from './parts.ts';
import { present } from './present.ts';

interface TimingOptions extends CommonOptions {
  readonly contract?: string;
  readonly renewalDate?: string;
  readonly notice?: string;
  readonly deadline?: string;
  readonly deadlineAt?: string;
  readonly reason?: string;
}

/** `duepost reschedule` and `duepost cancel`: one reminder, by its id or by its contract. */
export function addReschedule(program: Command): void {
  const move = withCommonOptions(program.command('reschedule [reminder]'))
    .description('move a reminder that has not ended; what is not given stays as it was asked for')
    .option('--contract <ref>', 'the contract whose only open reminder is meant')
    .option('--renewal-date <date>', 'YYYY-MM-DD')
    .option('--notice <period>', 'such as P30D, P1M or P10B')
    .option('--deadline <period>', 'before the start of the renewal date')
    .option('--deadline-at <instant>', 'RFC 3339, instead of --deadline')
    .option('--reason <text>', 'why; it is kept in the audit trail')
    .action((reminder: string | undefined, options: TimingOptions) =>
      inContext(options, async (context) => {
        const { actor, print } = context;
        const request = readReschedule(
          present({
            reminder_id: reminder,
            contract_ref: options.contract,
            renewal_date: options.renewalDate,
            notice_period: options.notice,
            deadline: options.deadline,
            deadline_at: options.deadlineAt,
            reason: options.reason,
          }),
          { outerKey: randomUUID(), actor },
        );
        const rescheduler = await open(context);
        const { applied, reminder: moved } = await rescheduler.reschedule(request);
        print({ applied, ...reminderView(moved, false) }, () =>
          [
            `${moved.reminderId} of contract ${moved.contractRef} is due ${moved.dueAt.toISOString()}, deadline ${moved.deadlineAt.toISOString()}`,
            ...(applied === 'full'
              ? []
              : ['only the timing moved: the body was sent or audited before, and stays as it was']),
          ].join('\n'),
        );
      }),
    );
  withExamples(
    move,
    "duepost reschedule --contract pol-7781 --renewal-date 2027-04-30 --reason 'the contract was extended'",
    'duepost reschedule rem_01k6… --notice P45D --deadline P14D',
  );
  const cancel = withCommonOptions(program.command('cancel [reminder]'))
    .description('end a reminder that has not ended and has no attempt under way')
    .option('--contract <ref>', 'the contract whose only open reminder is meant')
    .requiredOption('--reason <text>', 'for the audit trail')
    .action((reminder: string | undefined, options: CommonOptions & { contract?: string; reason: string }) =>
      inContext(options, async (context) => {
        const { actor, print } = context;
        const request = readCancel(
          present({ reminder_id: reminder, contract_ref: options.contract, reason: options.reason }),
          { outerKey: randomUUID(), actor },
        );
        const rescheduler = await open(context);
        const { reminder: cancelled } = await rescheduler.cancel(request);
        print(
          reminderView(cancelled, false),
          () => `${cancelled.reminderId} of contract ${cancelled.contractRef} is cancelled`,
        );
      }),
    );
  withExamples(cancel, "duepost cancel --contract pol-7781 --reason 'the contract was ended'");
}

async function open(context: Context): Promise<Rescheduler> {
  return openRescheduler(
    { pool: await openDatabase(context), announcer: await openAnnouncer(context) },
    context.config,
  );
}
