import {
  compareExpected,
  type DueReminder,
  type ExpectedReminder,
  findGaps,
  type Gap,
} from '../../domain/audit/completeness.ts';
import { listRemindersDueAfter } from '../../store/evidence/due-reminders.ts';
import type { Pool } from '../../store/pool.ts';
import { type DroppedMonth, readDropped } from './dropped.ts';

export interface Completeness {
  /** Whether every reminder due in the period, and every one that was expected, has exactly one final outcome, in time. */
  readonly complete: boolean;
  readonly reminders: number;
  /** By the state in which they ended; `open` has not. */
  readonly outcomes: Readonly<Record<string, number>>;
  readonly gaps: readonly Gap[];
  /** Deliveries that ended otherwise than delivered: complete, and worth a look. */
  readonly notDelivered: readonly string[];
  /** Months of reminders that retention has dropped: what of them was due in the period cannot be told any more. */
  readonly dropped: readonly DroppedMonth[];
}

const PAGE = 2_000;

/** Looks at every reminder that was due within a period, one by one. */
export async function reconcilePeriod(
  pool: Pool,
  period: { readonly from: Date; readonly to: Date },
  expected: readonly ExpectedReminder[] | undefined,
): Promise<Completeness> {
  const gaps: Gap[] = [];
  const due: Pick<DueReminder, 'deliveryId' | 'contractRef' | 'renewalDate'>[] = [];
  const outcomes: Record<string, number> = {};
  const notDelivered: string[] = [];
  for (let after: string | undefined = ''; after !== undefined; ) {
    const page = await listRemindersDueAfter(pool, { after, ...period, limit: PAGE });
    for (const reminder of page.reminders) {
      const { deliveryId, contractRef, renewalDate, hasEnded, state } = reminder;
      gaps.push(...findGaps(reminder));
      due.push({ deliveryId, contractRef, renewalDate });
      const outcome = hasEnded ? (state ?? 'lost') : 'open';
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      if (hasEnded && state !== 'delivered') notDelivered.push(deliveryId);
    }
    after = page.last;
  }
  if (expected !== undefined) gaps.push(...compareExpected(expected, due));
  const { months } = await readDropped(pool);
  const to = period.to.toISOString();
  return {
    complete: gaps.length === 0,
    reminders: due.length,
    outcomes,
    gaps,
    notDelivered,
    dropped: months.filter((m) => m.kind === 'reminder' && m.month <= to.slice(0, 7)),
  };
}
