import type { Bundle, BundledDelivery } from './bundle.ts';
import { readDetail } from './chain.ts';
import type { AttemptRow } from './facts.ts';

/** What a sound bundle proves, and what no bundle can, in plain words. */
export interface Proof {
  readonly deliveries: readonly { readonly delivery_id: string; readonly says: readonly string[] }[];
  /** Whether a key has signed all of it, by seals or as a file; if not, anybody could have written it. */
  readonly vouched_for: boolean;
  readonly proves: readonly string[];
  readonly cannot: readonly string[];
}

/**
 * @param sealedTo  by delivery id, how many of its trail entries are sealed
 */
export function explain(bundle: Bundle, sealedTo: ReadonlyMap<string, number>): Proof {
  const vouchedFor =
    bundle.signature !== null ||
    (bundle.operations.every((o) => o.seal !== null) &&
      bundle.deliveries.every((d) => sealedTo.get(d.delivery.delivery_id) === d.trail.length));
  return {
    deliveries: bundle.deliveries.map((d) => ({
      delivery_id: d.delivery.delivery_id,
      says: [
        ...story(d),
        ...attachedReceipts(bundle, d),
        sealing(bundle, d, sealedTo.get(d.delivery.delivery_id) ?? 0),
      ],
    })),
    vouched_for: vouchedFor,
    proves: proves(bundle, vouchedFor),
    cannot: cannot(bundle),
  };
}

/** What happened, in order. */
export function story(bundled: BundledDelivery): string[] {
  const { delivery, source, attempts, records, body } = bundled;
  const receipts = receiptsOf(bundled);
  const subject =
    'reminder_id' in source
      ? `Contract ${source.contract_ref}, renewal on ${source.renewal_date}, notice period ${source.notice_period} by the calendar of ${source.jurisdiction} (${source.time_zone}): the notice was due at ${instant(delivery.scheduled_at)}${deadline(delivery.deadline_at)}.`
      : `Event ${source.event_id} of type ${source.type}${source.contract_ref === null ? '' : ` for contract ${source.contract_ref}`}: due at ${instant(delivery.scheduled_at)}${deadline(delivery.deadline_at)}.`;
  return [
    subject,
    ...attempts.map((a) => attemptSentence(a, receipts.get(a.attempt))),
    ...(attempts.length > 1
      ? [
          `Every attempt carried the same bytes (SHA-256 ${body.sha256}) and the same idempotency key, ${delivery.idempotency_key}.`,
        ]
      : [`The bytes have the SHA-256 ${body.sha256}, the idempotency key is ${delivery.idempotency_key}.`]),
    ...(body.bytes === null
      ? [`The bytes were erased at ${instant(body.erased_at ?? '')}; their hash remains.`]
      : []),
    ...records.map(
      (r) =>
        `${records.length > 1 ? `Cycle ${r.cycle}: ` : ''}${r.shadow ? 'In shadow mode: ' : ''}${ENDINGS[r.state] ?? r.state} at ${instant(r.finished_at)}${r.dead_reason === null ? '' : ` (${r.dead_reason.replaceAll('_', ' ')})`}${r.state === 'delivered' && r.deadline_at !== null ? (r.in_time ? ', in time' : ', after the deadline') : ''}.`,
    ),
    ...(delivery.ended_at === null ? [`It has not ended: ${delivery.state.replaceAll('_', ' ')}.`] : []),
  ];
}

const ENDINGS: Readonly<Record<string, string>> = {
  delivered: 'Delivered',
  dead_lettered: 'Given up',
  cancelled: 'Cancelled',
};

function attemptSentence(attempt: AttemptRow, receipt: string | undefined): string {
  const when = instant(attempt.started_at ?? attempt.claimed_at);
  const answer =
    attempt.status !== null
      ? `the receiver answered ${attempt.status}${receipt === undefined ? '' : ` and gave the receipt ${receipt}`}`
      : attempt.outcome === null
        ? 'the call is under way'
        : `no answer (${attempt.error ?? 'the claim expired; whether it was processed is not known'})`;
  if (attempt.shadow)
    return `Attempt ${attempt.attempt} at ${when}: shadow mode, nothing was sent to ${attempt.url}.`;
  return `Attempt ${attempt.attempt} at ${when} to ${attempt.url}: ${answer}${attempt.late ? ', after its claim had expired' : ''}.`;
}

/** The receipts that the receiver gave in its answers, by attempt (the header `webhook-receipt`). */
export function receiptsOf({ trail }: BundledDelivery): ReadonlyMap<unknown, string> {
  const receipts = new Map<unknown, string>();
  for (const entry of trail) {
    const told = readDetail(entry) ?? {};
    const receipt = findReceipt(told);
    if (receipt !== undefined) receipts.set(told['attempt'], receipt);
  }
  return receipts;
}

/** The receipt in the detail of a trail entry; undefined: the receiver gave none. */
export function findReceipt(told: Readonly<Record<string, unknown>>): string | undefined {
  const headers = told['response_headers'] as Readonly<Record<string, unknown>> | null | undefined;
  const receipt = headers?.['webhook-receipt'];
  return typeof receipt === 'string' ? receipt : undefined;
}

function attachedReceipts(bundle: Bundle, { delivery }: BundledDelivery): string[] {
  return bundle.receipts
    .filter((r) => r.idempotency_key === delivery.idempotency_key)
    .map((r) =>
      r.effects === 0
        ? `The receiver's record knows the key and says that it took no effect.`
        : `The receiver's record says that the key took effect once${r.effect_at === null ? '' : `, at ${r.effect_at}`}${r.body_sha256 === null ? '' : ', for these bytes'}.`,
    );
}

function sealing(bundle: Bundle, { delivery, trail, seals }: BundledDelivery, sealedTo: number): string {
  if (sealedTo === 0) {
    return bundle.signature === null
      ? 'NOT SEALED: nothing but this file vouches for it yet.'
      : `Not sealed yet: the signature of this file vouches for it, as of ${instant(bundle.exported_at)}.`;
  }
  const last = seals.findLast((s) => s.trail_length === sealedTo);
  const at = bundle.seals.find((s) => s.statement.number === last?.seal)?.statement.sealed_at ?? '';
  const rest = trail.length - sealedTo;
  const tail = rest === 0 ? '' : ` The last ${rest} of ${trail.length} entries are not sealed yet.`;
  return `Sealed in seal ${last?.seal ?? '?'} at ${instant(at)}: nothing up to trail entry ${sealedTo} of ${delivery.delivery_id} was changed, removed, added or reordered since.${tail}`;
}

function proves(bundle: Bundle, vouchedFor: boolean): string[] {
  const head = bundle.seals.at(-1)?.statement;
  return [
    vouchedFor
      ? 'The bytes, addresses, headers, times and answers above are what this installation recorded, in this order.'
      : 'Nothing of what is not sealed: it fits together, but no key has signed it, so anybody could have written it.',
    ...(head === undefined
      ? []
      : [
          `What is sealed was on record when its seal was signed with the key ${head.key_id}; the seals are one unbroken history up to seal ${head.number}.`,
        ]),
    ...(bundle.signature === null
      ? []
      : [`This file is as it was exported, by the signature of the key ${bundle.signature.key_id}.`]),
  ];
}

function cannot(bundle: Bundle): string[] {
  return [
    bundle.receipts.length === 0
      ? "That the receiver acted on it, and exactly once: that rests on the receiver's own record of idempotency keys, of which nothing is attached."
      : "That the receiver's record, which is attached, is true: it is the receiver's word.",
    'That the clock was right: instants are those of the database; how far the host was off stands with each attempt.',
    'That whoever holds the signing key did not make up another history from the start: compare the last seal with one that was published at the time.',
    ...(bundle.signature === null
      ? ['That what is not sealed is as it was exported: this file is not signed.']
      : []),
  ];
}

function deadline(at: string | null): string {
  return at === null ? '' : `, with the deadline ${instant(at)}`;
}

/** An instant for people, to the millisecond. */
export function instant(text: string): string {
  return text.replace(/(\.\d{3})\d*Z$/, '$1Z');
}
