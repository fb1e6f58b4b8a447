import type { DeliveryFacts, DeliveryRow, RecordRow } from './facts.ts';
import type { Findings } from './finding.ts';

/** The state in which a cycle ends, by the entry that ends it. */
const ENDS: Readonly<Record<string, string>> = {
  deliver: 'delivered',
  deliver_late: 'delivered',
  give_up: 'dead_lettered',
  miss: 'dead_lettered',
  abandon: 'dead_lettered',
  cancel: 'cancelled',
};

/** Whether a cycle ends with an entry of this name. */
export function isEnd(event: string): boolean {
  return event in ENDS;
}

/** Holds the audit records against the trail, the attempts and the delivery: one per cycle that ended, saying the same. */
export function checkRecords(delivery: DeliveryRow, facts: DeliveryFacts, findings: Findings): void {
  const { records, trail } = facts;
  const id = delivery.delivery_id;
  const ends = trail.filter((e) => isEnd(e.event));
  ends.forEach((end, i) => {
    findings.expect(
      records.some((r) => r.trail_length === end.entry),
      `audit record of ${id}`,
      `cycle ${i + 1} ended with trail entry ${end.entry} (${end.event}), and its record is missing`,
    );
  });
  for (const record of records)
    checkRecord(record, { delivery, facts, findings, isLast: record === records.at(-1) });

  const ended = delivery.ended_at !== null;
  findings.expect(
    records.length === (ended ? delivery.cycle : delivery.cycle - 1),
    `audit record of ${id}`,
    `cycle ${delivery.cycle} ${ended ? 'has ended' : 'is under way'}, and there are ${records.length} records`,
  );
  const last = records.at(-1);
  if (!ended || last === undefined) return;
  findings.expect(
    last.state === delivery.state && last.dead_reason === delivery.dead_reason,
    `delivery ${id}`,
    `it says ${[delivery.state, delivery.dead_reason].filter(Boolean).join(', ')}, and its audit record ${[last.state, last.dead_reason].filter(Boolean).join(', ')}`,
  );
  findings.expect(
    last.finished_at === delivery.ended_at,
    `delivery ${id}`,
    `it says that it ended at ${String(delivery.ended_at)}, and its audit record at ${last.finished_at}`,
  );
}

function checkRecord(
  record: RecordRow,
  of: { delivery: DeliveryRow; facts: DeliveryFacts; findings: Findings; isLast: boolean },
): void {
  const { delivery, facts, findings, isLast } = of;
  const where = `audit record ${record.cycle} of ${delivery.delivery_id}`;
  const expect = (holds: boolean, what: string): void => findings.expect(holds, where, what);

  const end = facts.trail.find((e) => e.entry === record.trail_length);
  expect(
    end !== undefined && end.sha256 === record.trail_sha256 && ENDS[end.event] === record.state,
    `it says ${record.state} by trail entry ${record.trail_length}, which is ${end === undefined ? 'missing' : `${end.event}, or has another hash`}`,
  );
  if (end !== undefined) {
    expect(
      end.at === record.finished_at,
      `it says finished at ${record.finished_at}, and the trail ${end.at}`,
    );
    expect(end.actor === record.actor, `it says by ${record.actor}, and the trail by ${end.actor}`);
  }
  for (const name of ['kind', 'endpoint_id', 'contract_ref', 'idempotency_key'] as const) {
    expect(record[name] === delivery[name], `its ${name} is not that of the delivery`);
  }
  if (facts.body !== null) {
    expect(record.body_sha256 === facts.body.sha256, 'its body hash is not that of the stored body');
  }
  const attempts = facts.attempts.filter((a) => a.cycle === record.cycle);
  expect(
    attempts.length === record.attempts,
    `it says that ${record.attempts} attempts were made, and there are ${attempts.length}`,
  );
  const first = attempts[0];
  // A result that came late knows when its call began; the record was written before.
  const begun = first === undefined ? [null] : [first.started_at, first.claimed_at];
  expect(
    begun.includes(record.first_attempt_at),
    `it says that the first attempt was at ${String(record.first_attempt_at)}, and the attempt ${String(begun[0])}`,
  );
  const inTime =
    record.state === 'delivered' && (record.deadline_at === null || record.finished_at < record.deadline_at);
  expect(
    record.in_time === inTime,
    `it says in time: ${record.in_time}, and by its own instants it is: ${inTime}`,
  );
  if (!isLast || delivery.ended_at === null) return;
  expect(record.due_at === delivery.scheduled_at, 'its due instant is not that of the delivery');
  expect(record.deadline_at === delivery.deadline_at, 'its deadline is not that of the delivery');
}
