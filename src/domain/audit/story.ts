import type { BundledDelivery } from './bundle.ts';
import { readDetail, type TrailEntry } from './chain.ts';
import { changesIn } from './changes.ts';
import { dueReasons } from './due-reasons.ts';
import type { AttemptRow } from './facts.ts';
import { instant, msBetween, spell } from './instants.ts';

type Told = Readonly<Record<string, unknown>>;

/** What happened to a delivery, in order, one sentence each. */
export function story(bundled: BundledDelivery): string[] {
  const { delivery, attempts, body } = bundled;
  const told = tellsOf(bundled);
  return [
    subject(bundled),
    ...('due_proof' in bundled.source ? dueReasons(bundled.source.due_proof) : []),
    ...lateStart(bundled),
    ...moves(bundled),
    ...attempts.map((a) => attemptSentence(a, told.get(a.attempt) ?? {})),
    ...(wasSent(bundled) ? [] : [nothingSent(attempts)]),
    ...bytesSentence(bundled),
    ...(body.bytes === null
      ? [`The bytes were erased at ${instant(body.erased_at ?? '')}; their hash remains.`]
      : []),
    ...endings(bundled),
    ...(delivery.ended_at === null ? [`It has not ended: ${delivery.state.replaceAll('_', ' ')}.`] : []),
  ];
}

/** Whether any byte may have left: an attempt was made, not in shadow mode, and not in vain for certain. */
export function wasSent(bundled: BundledDelivery): boolean {
  const told = tellsOf(bundled);
  return bundled.attempts.some((a) => !a.shadow && told.get(a.attempt)?.['sent'] !== false);
}

function nothingSent(attempts: readonly AttemptRow[]): string {
  if (attempts.length === 0) return 'Nothing was sent: no attempt was made.';
  return attempts.every((a) => a.shadow)
    ? 'Nothing was sent: every attempt was made in shadow mode.'
    : 'Nothing was sent: no attempt got as far as that.';
}

function subject({ delivery, source }: BundledDelivery): string {
  // Of what is still to come: it is due.
  const is = delivery.ended_at === null && delivery.attempt === 0 ? 'is' : 'was';
  const due = `due at ${instant(delivery.scheduled_at)}${deadline(delivery.deadline_at)}.`;
  return 'reminder_id' in source
    ? `Contract ${source.contract_ref}, renewal on ${source.renewal_date}, notice period ${source.notice_period} by the calendar of ${source.jurisdiction} (${source.time_zone}): the notice ${is} ${due}`
    : `Event ${source.event_id} of type ${source.type}${source.contract_ref === null ? '' : ` for contract ${source.contract_ref}`}: ${due}`;
}

function deadline(at: string | null): string {
  return at === null ? '' : `, with the deadline ${instant(at)}`;
}

const TIMINGS: readonly string[] = ['schedule', 'reschedule', 'recalculate'];

/** A reminder that was due before anybody asked for it: the delay is not the sending's. */
function lateStart({ delivery, source, trail }: BundledDelivery): string[] {
  const decided = trail.findLast((e) => TIMINGS.includes(e.event));
  if (!('reminder_id' in source) || !source.late_start || decided === undefined) return [];
  const how = decided.event === 'schedule' ? 'accepted' : 'moved to that time';
  const late = spell(msBetween(delivery.scheduled_at, decided.at));
  return [
    `It was ${how} only at ${instant(decided.at)}, ${late} after it was due, and so was to be sent at once.`,
  ];
}

function moves({ trail, delivery }: BundledDelivery): string[] {
  const moved = trail.filter((e) => e.event === 'reschedule' || e.event === 'recalculate');
  if (moved.length === 0) return [];
  return [
    ...moved.map((e) => `${moveSentence(e)}.`),
    `Its idempotency key stays the one it was accepted under, ${delivery.idempotency_key}, whatever its dates are now.`,
  ];
}

function moveSentence(entry: TrailEntry): string {
  const how = entry.event === 'reschedule' ? 'Rescheduled' : 'Recalculated by a newer calendar';
  return [`${how} at ${instant(entry.at)} by ${entry.actor}`, ...moveParts(readDetail(entry) ?? {})].join(
    ': ',
  );
}

/** What a reschedule or recalculation moved, what became of the body, and why; nothing for other entries. */
export function moveParts(told: Told): string[] {
  const changes = changesIn(told);
  if (changes === undefined) return [];
  const body = told['applied'] === 'timing_only' ? 'the body stays as it was' : 'the body says so';
  const reason = told['reason'];
  return [[...changes, body].join(', '), ...(typeof reason === 'string' ? [reason] : [])];
}

/** What the trail tells of each attempt, by its number; of a result that came late, that. */
export function tellsOf({ trail }: BundledDelivery): ReadonlyMap<unknown, Told> {
  const tells = new Map<unknown, Told>();
  for (const entry of trail) {
    const told = readDetail(entry) ?? {};
    if (told['attempt'] !== undefined) tells.set(told['attempt'], { ...tells.get(told['attempt']), ...told });
  }
  return tells;
}

/** The receipt that the receiver gave in its answer (the header `webhook-receipt`); undefined: none. */
export function findReceipt(told: Told): string | undefined {
  const headers = told['response_headers'] as Told | null | undefined;
  const receipt = headers?.['webhook-receipt'];
  return typeof receipt === 'string' ? receipt : undefined;
}

/** Milliseconds that the clock of the attempt's host was ahead of the database's, the way included; undefined: nobody said. */
export function clockOffset(told: Told): number | undefined {
  const offset = told['host_clock_offset_ms'];
  return typeof offset === 'number' ? offset : undefined;
}

function attemptSentence(attempt: AttemptRow, told: Told): string {
  const when = instant(attempt.started_at ?? attempt.claimed_at);
  if (attempt.shadow)
    return `Attempt ${attempt.attempt} at ${when}: shadow mode, nothing was sent to ${attempt.url}.`;
  const offset = clockOffset(told);
  const clock =
    offset === undefined
      ? ''
      : ` (clock of its host against the database: ${signed(offset)}, the way between them included)`;
  return `Attempt ${attempt.attempt} at ${when} to ${attempt.url}: ${answerOf(attempt, told)}${attempt.late ? ', after its claim had expired' : ''}${clock}.`;
}

/** Milliseconds with their sign, for people. */
export function signed(ms: number): string {
  return `${ms < 0 ? '' : '+'}${ms} ms`;
}

function answerOf(attempt: AttemptRow, told: Told): string {
  const receipt = findReceipt(told);
  if (attempt.status !== null)
    return `the receiver answered ${attempt.status}${receipt === undefined ? '' : ` and gave the receipt ${receipt}`}`;
  if (attempt.outcome === null) return 'the call is under way';
  if (told['sent'] === false) return `nothing was sent (${attempt.error ?? 'it did not come to a call'})`;
  return `no answer (${attempt.error ?? 'the claim expired; whether it was processed is not known'})`;
}

function bytesSentence(bundled: BundledDelivery): string[] {
  const { delivery, body, attempts } = bundled;
  const key = delivery.idempotency_key;
  if (!wasSent(bundled))
    return [`What was to be sent has the SHA-256 ${body.sha256}, the idempotency key is ${key}.`];
  return attempts.length > 1
    ? [`Every attempt carried the same bytes (SHA-256 ${body.sha256}) and the same idempotency key, ${key}.`]
    : [`The bytes have the SHA-256 ${body.sha256}, the idempotency key is ${key}.`];
}

const ENDINGS: Readonly<Record<string, string>> = {
  delivered: 'Delivered',
  dead_lettered: 'Given up',
  cancelled: 'Cancelled',
};

function endings({ records }: BundledDelivery): string[] {
  return records.map((r) => {
    const cycle = records.length > 1 ? `Cycle ${r.cycle}: ` : '';
    const mode = r.shadow ? 'In shadow mode: ' : '';
    const why = r.dead_reason === null ? '' : ` (${r.dead_reason.replaceAll('_', ' ')})`;
    const inTime = r.in_time ? ', in time: before the deadline' : ', after the deadline';
    const time = r.state === 'delivered' && r.deadline_at !== null ? inTime : '';
    return `${cycle}${mode}${ENDINGS[r.state] ?? r.state} at ${instant(r.finished_at)}${why}${time}.`;
  });
}
