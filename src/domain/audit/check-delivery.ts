import { canonicalJson } from '../json.ts';
import { checkChain, readDetail, readJson, sameInstant } from './chain.ts';
import { checkAttempts } from './check-attempts.ts';
import { checkRecords } from './check-records.ts';
import type { DeliveryFacts, DeliveryRow, EventRow, ReminderRow } from './facts.ts';
import { collectFindings, type Finding, type Findings } from './finding.ts';

/** Entries that say when a reminder is due. */
const TIMINGS: readonly string[] = ['schedule', 'reschedule', 'recalculate'];

/**
 * Holds everything that is known of a delivery against each other: the chain, the attempts, the audit records, the
 * delivery's own row, its reminder or event, and the body. Needs no seal.
 */
export function checkDelivery(deliveryId: string, facts: DeliveryFacts): readonly Finding[] {
  const findings = collectFindings();
  const where = `delivery ${deliveryId}`;
  for (const fault of checkChain(facts.trail)) {
    findings.add(`trail entry ${fault.entry} of ${deliveryId}`, fault.what);
  }
  const { delivery } = facts;
  if (delivery === null) {
    findings.add(where, 'its row is missing, and other rows speak of it');
    return findings.list;
  }
  const head = facts.trail.at(-1);
  findings.expect(
    head?.entry === delivery.trail_length && head.sha256 === delivery.trail_sha256,
    `trail of ${deliveryId}`,
    `the delivery says that it has ${delivery.trail_length} entries and ends in ${delivery.trail_sha256.slice(0, 12)}…, and it has ${head?.entry ?? 0}, ending in ${head?.sha256.slice(0, 12) ?? 'nothing'}`,
  );
  checkCounters(facts, { delivery, findings, where });
  checkAttempts(delivery, facts, findings);
  checkRecords(delivery, facts, findings);
  checkBody(facts, findings, deliveryId);
  checkSource(facts, { delivery, findings, where });
  return findings.list;
}

interface Scope {
  readonly delivery: DeliveryRow;
  readonly findings: Findings;
  readonly where: string;
}

function checkCounters({ trail }: DeliveryFacts, { delivery, findings, where }: Scope): void {
  const count = (...events: string[]): number => trail.filter((e) => events.includes(e.event)).length;
  findings.expect(trail[0]?.event === 'schedule', where, 'its trail does not begin with the scheduling');
  const cycles = 1 + count('replay', 'replay_held');
  findings.expect(
    delivery.cycle === cycles,
    where,
    `it says cycle ${delivery.cycle}, its trail ${cycles}: the one that began it and one per replay`,
  );
  const revisions = 1 + count('reschedule', 'recalculate');
  findings.expect(
    delivery.revision === revisions,
    where,
    `it says revision ${delivery.revision}, its trail ${revisions}`,
  );
}

function checkBody({ body, trail }: DeliveryFacts, findings: Findings, deliveryId: string): void {
  const where = `body of ${deliveryId}`;
  if (body === null) {
    findings.add(where, 'it is missing');
    return;
  }
  const erased = trail.find((e) => e.event === 'erase');
  if (body.bytes_sha256 === null) {
    findings.expect(
      erased !== undefined && erased.at === body.erased_at,
      where,
      'its bytes are gone, and no trail entry of that instant says who erased them and why',
    );
    return;
  }
  findings.expect(
    erased === undefined && body.erased_at === null,
    where,
    'it is said to be erased, and there are bytes',
  );
  findings.expect(
    body.bytes_sha256 === body.sha256,
    where,
    'its bytes do not have the hash that is recorded',
  );
}

function checkSource(facts: DeliveryFacts, scope: Scope): void {
  const { delivery, findings } = scope;
  const { source } = facts;
  const where = `${delivery.kind} ${delivery.source_id}`;
  if (source === null) {
    findings.add(where, `its row is missing, and ${delivery.delivery_id} is of it`);
    return;
  }
  findings.expect(
    source.contract_ref === delivery.contract_ref,
    where,
    `its contract is ${String(source.contract_ref)}, that of ${delivery.delivery_id} is ${String(delivery.contract_ref)}`,
  );
  const first = facts.trail[0];
  const told = first === undefined ? undefined : readDetail(first);
  findings.expect(
    told?.['idempotency_key'] === source.idempotency_key,
    where,
    `its idempotency key is not the one it was scheduled under`,
  );
  if ('event_id' in source) checkEvent(source, { told, where, scope });
  else checkReminder(source, { facts, where, scope });
}

function checkEvent(
  event: EventRow,
  of: { told: Readonly<Record<string, unknown>> | undefined; where: string; scope: Scope },
): void {
  const { told, where, scope } = of;
  const { delivery, findings } = scope;
  findings.expect(told?.['type'] === event.type, where, `its type is not the one it was accepted with`);
  const read = readJson(event.answer);
  const answer = (Array.isArray(read) ? read : []) as ({
    delivery_id?: string;
    endpoint_id?: string;
  } | null)[];
  findings.expect(
    answer.some((d) => d?.delivery_id === delivery.delivery_id && d.endpoint_id === delivery.endpoint_id),
    where,
    `it does not name ${delivery.delivery_id} to ${delivery.endpoint_id} among its deliveries`,
  );
  const wanted = `${event.idempotency_key}:${delivery.endpoint_id}`;
  findings.expect(
    delivery.idempotency_key === wanted,
    `delivery ${delivery.delivery_id}`,
    `its idempotency key is ${delivery.idempotency_key} instead of ${wanted}`,
  );
}

function checkReminder(
  reminder: ReminderRow,
  of: { facts: DeliveryFacts; where: string; scope: Scope },
): void {
  const { facts, where, scope } = of;
  const { delivery, findings } = scope;
  for (const name of ['delivery_id', 'endpoint_id', 'idempotency_key'] as const) {
    findings.expect(
      reminder[name] === delivery[name],
      where,
      `its ${name} is ${reminder[name]}, and ${delivery.delivery_id} says ${delivery[name]}`,
    );
  }
  findings.expect(
    reminder.due_at === delivery.scheduled_at,
    where,
    `it is due at ${reminder.due_at}, its delivery at ${delivery.scheduled_at}`,
  );
  const released = facts.trail.some((e) => e.event.startsWith('replay')) && delivery.deadline_at === null;
  findings.expect(
    released || reminder.deadline_at === delivery.deadline_at,
    where,
    `its deadline is ${reminder.deadline_at}, that of its delivery ${String(delivery.deadline_at)}`,
  );
  const timing = facts.trail.findLast((e) => TIMINGS.includes(e.event));
  const told = timing === undefined ? undefined : readDetail(timing);
  if (told === undefined) return;
  findings.expect(
    canonicalJson(told['due_proof'] ?? null) === canonicalJson(readJson(reminder.due_proof) ?? null),
    where,
    'the proof of its due date is not the one in the trail',
  );
  const to = (told['to'] ?? told) as Readonly<Record<string, unknown>>;
  for (const name of ['due_at', 'deadline_at'] as const) {
    findings.expect(
      typeof to[name] === 'string' && sameInstant(to[name], reminder[name]),
      where,
      `its ${name} is ${reminder[name]}, and the trail says ${String(to[name])}`,
    );
  }
}
