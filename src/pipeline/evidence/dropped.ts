import { readDetailText } from '../../domain/audit/chain.ts';
import type { OperationRow } from '../../domain/audit/facts.ts';
import type { Findings } from '../../domain/audit/finding.ts';
import { monthOfId } from '../../domain/audit/seal.ts';
import { readOperationsOf } from '../../store/evidence/operations.ts';
import type { Queryable } from '../../store/pool.ts';

/** Under what operations on retention stand. */
export const RETENTION = 'retention';

/** A month that retention began to drop. */
export interface DroppedMonth {
  readonly kind: 'reminder' | 'event';
  /** `2026-10`. */
  readonly month: string;
  readonly at: string;
  /** How old it had to be. */
  readonly olderThan: string;
  /** Whether everything before went with it: the first partition is open towards the past. */
  readonly isOpenToPast: boolean;
}

/** What is rightly missing. */
export interface Dropped {
  readonly months: readonly DroppedMonth[];
  /** Deliveries of such months that were kept, and must be there. */
  readonly kept: readonly string[];
  /** Whether retention has dropped a month. */
  coversMonth(kind: string, month: string): boolean;
  /** The same for the month of a delivery's id; not for one that was kept. */
  covers(kind: string, deliveryId: string): boolean;
}

/** Reads what retention says of itself, which is sealed like everything else; a month that was not old enough is no excuse. */
export async function readDropped(db: Queryable, findings?: Findings): Promise<Dropped> {
  const months: DroppedMonth[] = [];
  const keptOf = new Map<string, readonly string[]>();
  const subjectIds = [RETENTION];
  for await (const operation of readOperationsOf(db, { subjectIds, from: '1970-01-01', to: undefined })) {
    const dropped = toMonth(operation);
    if (dropped === undefined) continue;
    const { kind, month } = dropped;
    if (operation.event === 'retention.dropped') {
      keptOf.set(`${kind} ${month}`, keptIn(operation));
    } else if (isOldEnough(dropped)) {
      months.push(dropped);
      // Until it is done, any of those that were kept before may go.
      keptOf.delete(`${kind} ${month}`);
    } else {
      findings?.add(
        `operation ${operation.operation_id}`,
        `it says that ${month} was dropped, which was not old enough`,
      );
    }
  }
  const kept = new Set([...keptOf.values()].flat());
  const coversMonth = (kind: string, month: string): boolean =>
    months.some((d) => d.kind === kind && (d.month === month || (d.isOpenToPast && month < d.month)));
  return {
    months,
    kept: [...kept],
    coversMonth,
    covers: (kind, id) => id !== '' && !kept.has(id) && coversMonth(kind, monthOfId(id)),
  };
}

function keptIn({ detail }: OperationRow): string[] {
  const kept = readDetailText(detail)?.['kept'];
  return Array.isArray(kept) ? kept.map(String) : [];
}

function toMonth({ at, detail }: OperationRow): DroppedMonth | undefined {
  const told = readDetailText(detail);
  const kind = told?.['kind'];
  const month = told?.['month'];
  const olderThan = told?.['older_than'];
  if (
    (kind !== 'reminder' && kind !== 'event') ||
    typeof month !== 'string' ||
    typeof olderThan !== 'string'
  ) {
    return undefined;
  }
  return { kind, month, at, olderThan, isOpenToPast: told?.['open_to_past'] === true };
}

/** Whether, when dropping began, the whole month was as long ago as the rule in force said: days (`365d`) or years. */
function isOldEnough({ month, at, olderThan }: DroppedMonth): boolean {
  const [, amount, unit] = /^(\d+)([dy])$/.exec(olderThan) ?? [];
  if (amount === undefined) return false;
  const from = new Date(`${month}-01T00:00:00Z`);
  from.setUTCMonth(from.getUTCMonth() + 1);
  if (unit === 'd') from.setUTCDate(from.getUTCDate() + Number(amount));
  else from.setUTCFullYear(from.getUTCFullYear() + Number(amount));
  return Number(amount) > 0 && from.getTime() <= Date.parse(at);
}
