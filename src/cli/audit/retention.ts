import type { Command } from 'commander';
import { erasePayloads } from '../../pipeline/evidence/erase.ts';
import { endHold, placeHold } from '../../pipeline/evidence/hold.ts';
import { retain } from '../../pipeline/evidence/retention.ts';
import { listHolds } from '../../store/evidence/holds.ts';
import { type CommonOptions, inContext, withCommonOptions, withExamples } from '../context.ts';
import { openDatabase } from '../parts.ts';
import { formatTable } from '../print.ts';

interface HoldOptions extends CommonOptions {
  readonly contract: string;
  readonly reason: string;
}

interface EraseOptions extends CommonOptions {
  readonly contract?: string;
  readonly delivery?: string;
  readonly reason: string;
}

/** `duepost audit hold …`, `audit erase` and `audit retain`. */
export function addAuditRetention(group: Command): void {
  addHold(group);
  addErase(group);
  addRetain(group);
}

function addHold(group: Command): void {
  const hold = group.command('hold').description('contracts of which nothing may be dropped or erased');
  const change = (name: string, does: string, run: typeof placeHold, done: string): void => {
    withCommonOptions(hold.command(name))
      .description(does)
      .requiredOption('--contract <ref>', 'the contract')
      .requiredOption('--reason <text>', 'for the audit trail')
      .action((options: HoldOptions) =>
        inContext(options, async (context) => {
          const { contract, reason } = options;
          await run(await openDatabase(context), { contractRef: contract, reason, actor: context.actor });
          context.print({ contract_ref: contract, hold: done }, () => `contract ${contract}: hold ${done}`);
        }),
      );
  };
  change('place', 'keep everything of a contract until the hold is released', placeHold, 'placed');
  change('release', 'end a hold', endHold, 'released');
  withCommonOptions(hold.command('list'))
    .description('holds in force')
    .action((options: CommonOptions) =>
      inContext(options, async (context) => {
        const holds = await listHolds(await openDatabase(context));
        const data = holds.map((h) => ({
          contract_ref: h.contractRef,
          placed_at: h.placedAt,
          placed_by: h.placedBy,
          reason: h.reason,
        }));
        context.print({ data, next_cursor: null, has_more: false }, () =>
          formatTable(
            ['contract', 'placed', 'by', 'reason'],
            holds.map((h) => [h.contractRef, h.placedAt, h.placedBy, h.reason]),
          ),
        );
      }),
    );
}

function addErase(group: Command): void {
  const erase = withCommonOptions(group.command('erase'))
    .description('erase payloads for good; their hashes and the trail stay, and say who did it and why')
    .option('--contract <ref>', 'every payload of this contract')
    .option('--delivery <id>', 'the payload of this delivery')
    .requiredOption('--reason <text>', 'for the audit trail')
    .action((options: EraseOptions, self: Command) => {
      const { contract, delivery, reason } = options;
      if ((contract === undefined) === (delivery === undefined))
        self.error('error: name either a --contract or a --delivery', { exitCode: 2 });
      const reference = contract === undefined ? { deliveryId: delivery ?? '' } : { contractRef: contract };
      return inContext(options, async (context) => {
        const pool = await openDatabase(context);
        const erased = await erasePayloads(pool, reference, { actor: context.actor, reason });
        context.print({ erased }, () =>
          erased === 0 ? 'it was erased before' : `${erased} ${erased === 1 ? 'payload' : 'payloads'} erased`,
        );
      });
    });
  withExamples(erase, "duepost audit erase --contract pol-7781 --reason 'Art. 17 GDPR, ticket 4711'");
}

function addRetain(group: Command): void {
  withCommonOptions(group.command('retain'))
    .description('drop now what is older than it is kept; the reconciler does so every hour')
    .option('--dry-run', 'only show what would go')
    .action((options: CommonOptions & { readonly dryRun?: boolean }) =>
      inContext(options, async (context) => {
        const { config, log, actor } = context;
        const pool = await openDatabase(context);
        const dryRun = options.dryRun ?? false;
        const months = await retain({ pool, log, actor, retention: config.retention, dryRun });
        context.print({ busy: months === undefined, dry_run: dryRun, months: months ?? [] }, () =>
          months === undefined
            ? 'another process is at it'
            : formatTable(
                ['kind', 'month', dryRun ? 'would be' : 'result', 'removed', 'kept'],
                months.map((m) => [m.kind, m.month, m.result, m.removed, m.kept]),
              ),
        );
      }),
    );
}
