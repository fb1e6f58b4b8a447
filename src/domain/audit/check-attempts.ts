import { readDetail, sameInstant, type TrailEntry } from './chain.ts';
import type { AttemptRow, DeliveryFacts, DeliveryRow } from './facts.ts';
import type { Findings } from './finding.ts';

/** Outcomes that an attempt may have, by the entry that tells of it. */
const OUTCOMES: Readonly<Record<string, readonly string[]>> = {
  deliver: ['delivered'],
  deliver_late: ['delivered'],
  retry: ['retryable', 'terminal'],
  give_up: ['terminal', 'retryable', 'unknown'],
  lapse: ['unknown'],
  late_result: ['delivered', 'retryable', 'terminal', 'unknown'],
};

const LATE: readonly string[] = ['deliver_late', 'late_result'];

/** Holds the attempts against the trail: each that ended is told of, in the same words. */
export function checkAttempts(delivery: DeliveryRow, facts: DeliveryFacts, findings: Findings): void {
  const { attempts, trail } = facts;
  const id = delivery.delivery_id;
  const told = new Map<number, TrailEntry>();
  for (const entry of trail) {
    const number = entry.event in OUTCOMES ? readDetail(entry)?.['attempt'] : undefined;
    // A result that came late is told of after the lapse, and is what counts.
    if (typeof number === 'number') told.set(number, entry);
  }
  const last = attempts.at(-1)?.attempt ?? 0;
  findings.expect(
    last === delivery.attempt && attempts.every((a, i) => a.attempt === i + 1),
    `attempts of ${id}`,
    `the delivery says that ${delivery.attempt} were made, and there are: ${attempts.map((a) => a.attempt).join(', ') || 'none'}`,
  );
  const before = attempts.filter((a) => a.cycle < delivery.cycle).length;
  findings.expect(
    delivery.attempt_base === before,
    `delivery ${id}`,
    `it says that its cycle began after attempt ${delivery.attempt_base}, and that was ${before}`,
  );
  for (const attempt of attempts) {
    const where = `attempt ${attempt.attempt} of ${id}`;
    const entry = told.get(attempt.attempt);
    told.delete(attempt.attempt);
    if (attempt.outcome === null) {
      const underWay = delivery.state === 'in_flight' && attempt.attempt === delivery.attempt;
      findings.expect(underWay && entry === undefined, where, 'it has no outcome, and no call is under way');
    } else if (entry === undefined) {
      findings.add(where, `its outcome is ${attempt.outcome}, and no trail entry tells of it`);
    } else {
      checkAgainst(attempt, { entry, delivery, facts, findings, where });
    }
  }
  for (const [number, entry] of told) {
    findings.add(
      `attempt ${number} of ${id}`,
      `trail entry ${entry.entry} tells of it, and its row is missing`,
    );
  }
}

function checkAgainst(
  attempt: AttemptRow,
  of: {
    entry: TrailEntry;
    delivery: DeliveryRow;
    facts: DeliveryFacts;
    findings: Findings;
    where: string;
  },
): void {
  const { entry, delivery, facts, findings, where } = of;
  const told = readDetail(entry);
  if (told === undefined) return;
  const says = (name: string, inTrail: unknown, inRow: unknown): void => {
    findings.expect(
      (inTrail ?? null) === inRow,
      where,
      `its ${name} is ${JSON.stringify(inRow)}, and trail entry ${entry.entry} says ${JSON.stringify(inTrail ?? null)}`,
    );
  };
  findings.expect(
    OUTCOMES[entry.event]?.includes(String(attempt.outcome)) === true &&
      attempt.late === LATE.includes(entry.event),
    where,
    `its outcome is ${attempt.late ? 'late and ' : ''}${String(attempt.outcome)}, and trail entry ${entry.entry} is ${entry.event}`,
  );
  if (told['cycle'] !== undefined) says('cycle', told['cycle'], attempt.cycle);
  // A lapse that nobody can tell anything of has no more to compare.
  if (told['url'] === undefined) return;
  says('url', told['url'], attempt.url);
  says('status', told['status'], attempt.status);
  says('error', told['error'], attempt.error);
  says('detail', told['error_detail'], attempt.detail);
  says('response_excerpt', told['response_excerpt'], attempt.response_excerpt);
  says('duration_ms', told['duration_ms'], attempt.duration_ms);
  findings.expect(
    sameInstant(String(told['claimed_at']), attempt.claimed_at),
    where,
    `it was claimed at ${attempt.claimed_at}, and trail entry ${entry.entry} says ${String(told['claimed_at'])}`,
  );
  checkRequest(told, { attempt, delivery, facts, findings, where });
}

/** What was sent is of this delivery: its key, its id, the number of the attempt, its bytes. */
function checkRequest(
  told: Readonly<Record<string, unknown>>,
  of: { attempt: AttemptRow; delivery: DeliveryRow; facts: DeliveryFacts; findings: Findings; where: string },
): void {
  const { attempt, delivery, facts, findings, where } = of;
  if (facts.body !== null) {
    findings.expect(
      told['body_sha256'] === facts.body.sha256,
      where,
      'the bytes that it sent are not those that are stored',
    );
  }
  const headers = Object.fromEntries(
    Object.entries((told['request_headers'] ?? {}) as Record<string, unknown>).map(([name, value]) => [
      name.toLowerCase(),
      value,
    ]),
  );
  const wanted = {
    'idempotency-key': delivery.idempotency_key,
    'webhook-id': delivery.delivery_id,
    'x-delivery-attempt': String(attempt.attempt),
  };
  for (const [name, value] of Object.entries(wanted)) {
    findings.expect(headers[name] === value, where, `the header ${name} that it sent is not ${value}`);
  }
}
