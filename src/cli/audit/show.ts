import type { Command } from 'commander';
import { auditView } from '../../pipeline/views.ts';
import { type AuditPosition, type AuditRecord, listAuditRecords } from '../../store/evidence/audit.ts';
import { readDate, readWhole } from '../arguments.ts';
import { type CommonOptions, inContext, withCommonOptions, withExamples } from '../context.ts';
import { openDatabase } from '../parts.ts';
import { formatTable } from '../print.ts';

interface ShowOptions extends CommonOptions {
  readonly contract?: string;
  readonly date?: string;
  readonly limit: number;
}

/** `duepost audit …`; gives the group, for further commands. */
export function addAudit(program: Command): Command {
  const group = program.command('audit').description('how deliveries ended: records that are never changed');
  const show = withCommonOptions(group.command('show'))
    .description('audit records, the newest delivery first')
    .option('--contract <ref>', 'of this contract')
    .option(
      '--date <date>',
      'YYYY-MM-DD: with a contract, any day from due until ended in its zone, or the renewal date; else UTC',
      readDate,
    )
    .option('--limit <n>', 'how many at most', readWhole(1, 100_000), 1_000)
    .action((options: ShowOptions) =>
      inContext(options, async (context) => {
        const filter = { contractRef: options.contract, date: options.date };
        const page = { after: undefined as AuditPosition | undefined, limit: options.limit + 1 };
        const found = await listAuditRecords(await openDatabase(context), filter, page);
        const records = found.slice(0, options.limit);
        const hasMore = found.length > records.length;
        const answer = { data: records.map(auditView), next_cursor: null, has_more: hasMore };
        context.print(answer, () => formatTable(HEAD, records.map(toRow)) + more(hasMore));
      }),
    );
  withExamples(
    show,
    'duepost audit show --contract pol-7781',
    'duepost audit show --contract pol-7781 --date 2027-03-01 --json',
  );
  return group;
}

/** The line below a list that goes on. */
export function more(hasMore: boolean): string {
  return hasMore ? '\n… there are more: --limit shows them' : '';
}

const HEAD = ['delivery_id', 'cycle', 'contract', 'state', 'attempts', 'in time', 'due', 'ended', 'by'];

function toRow(record: AuditRecord): unknown[] {
  return [
    record.deliveryId,
    record.cycle,
    record.contractRef,
    describeEnd(record),
    record.attempts,
    record.inTime ? 'yes' : 'no',
    record.dueAt,
    record.finishedAt,
    record.actor,
  ];
}

function describeEnd({ state, deadReason, shadow }: AuditRecord): string {
  if (shadow) return `${state} (shadow: nothing was sent)`;
  return deadReason === undefined ? state : `${state} (${deadReason})`;
}
