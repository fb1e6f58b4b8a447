import type { Command } from 'commander';
import { describeOperation } from '../../domain/audit/changes.ts';
import type { OperationRow } from '../../domain/audit/facts.ts';
import { listOperations } from '../../store/evidence/operations.ts';
import { readTime, readWhole } from '../arguments.ts';
import { type CommonOptions, inContext, withCommonOptions, withExamples } from '../context.ts';
import { openDatabase } from '../parts.ts';
import { formatTable } from '../print.ts';
import { more } from './show.ts';

interface OperationsOptions extends CommonOptions {
  readonly subject?: string;
  readonly from?: Date;
  readonly limit: number;
}

/** `duepost audit operations`. */
export function addAuditOperations(group: Command): void {
  const command = withCommonOptions(group.command('operations'))
    .description('what people did to endpoints, keys and holds, and what retention dropped; the newest first')
    .option(
      '--subject <id>',
      'to this endpoint (ep_…), key (key_…) or contract; "retention" for what it dropped',
    )
    .option('--from <time>', 'from this instant, or day in UTC', readTime)
    .option('--limit <n>', 'how many at most', readWhole(1, 100_000), 100)
    .action((options: OperationsOptions) =>
      inContext(options, async (context) => {
        const found = await listOperations(await openDatabase(context), {
          subjectId: options.subject,
          from: options.from,
          limit: options.limit + 1,
        });
        const operations = found.slice(0, options.limit);
        const hasMore = found.length > operations.length;
        const answer = { data: operations.map(toView), next_cursor: null, has_more: hasMore };
        context.print(answer, () => formatTable(HEAD, operations.map(toRow)) + more(hasMore));
      }),
    );
  withExamples(command, 'duepost audit operations --subject ep_01k6… --from 2027-03-01T00:00:00Z');
}

const HEAD = ['at', 'subject', 'what', 'by', 'detail'];

function toRow({ at, subject_id, event, actor, detail }: OperationRow): unknown[] {
  return [at, subject_id, event, actor, describeOperation(detail)];
}

function toView({ detail, ...operation }: OperationRow): Record<string, unknown> {
  return { ...operation, detail: JSON.parse(detail) as unknown };
}
