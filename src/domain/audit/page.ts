import { html, htmlList, htmlPage, htmlTable, raw } from '../markup.ts';
import type { Bundle, BundledDelivery } from './bundle.ts';
import { readDetail, type TrailEntry } from './chain.ts';
import { describeOperation } from './changes.ts';
import { splitFindings } from './finding.ts';
import { instant } from './instants.ts';
import { clockOffset, findReceipt, moveParts, signed, tellsOf, wasSent } from './story.ts';
import type { BundleReport } from './verify-bundle.ts';

/** A bundle for people: one page that needs nothing else, has no script, and can be printed. */
export function evidencePage(
  bundle: Bundle,
  report: Pick<BundleReport, 'findings' | 'head' | 'proof'>,
): string {
  const { proof, head, findings } = report;
  const says = new Map(proof.deliveries.map((d) => [d.delivery_id, d.says]));
  return htmlPage({
    title: title(bundle),
    style: STYLE,
    body: [
      html`<h1>${title(bundle)}</h1>`,
      html`<p class="note">Exported ${instant(bundle.exported_at)} by ${bundle.exported_by} (${bundle.product}). Instants are UTC, by the clock of the database.</p>`,
      findings.length === 0
        ? html`<p class="good">Everything on this page fits together${bundle.seals.length === 0 ? '' : ' and with its seals'}${proof.vouched_for ? '' : '; but the file is not signed: deliveries, operations and receipts may have been left out, and what is not sealed made up'}.</p>`
        : raw`<div class="bad"><p>${splitFindings(findings).against.length > 0 ? 'This evidence is NOT sound:' : 'Who signed this evidence was NOT checked:'}</p>${htmlList(findings.map((f) => `${f.where}: ${f.what}`))}</div>`,
      ...bundle.deliveries.map((d) => section(d, says.get(d.delivery.delivery_id) ?? [])),
      ...(bundle.operations.length === 0 ? [] : [operations(bundle)]),
      raw`<h2>What this proves</h2>${htmlList(proof.proves)}`,
      raw`<h2>What it cannot prove</h2>${htmlList(proof.cannot)}`,
      html`<h2>How to check it</h2><p>This page is a picture. The proof is the JSON file whose member <code>sha256</code> is <code>${bundle.sha256}</code> (of its content: <code>jq -cS 'del(.sha256,.signature)' FILE | tr -d '\\n' | sha256sum</code>): <code>duepost audit verify FILE --public-key KEY.pem</code> checks it without any connection.${head === undefined ? '' : ` The last seal it knows of is number ${head.number} of ${instant(head.sealed_at)}, ${head.sha256}.`}</p>`,
    ].join('\n'),
  });
}

function title({ question }: Bundle): string {
  const of =
    question.contract_ref === null
      ? `delivery ${question.delivery_id ?? ''}`
      : `contract ${question.contract_ref}${question.delivery_id === null ? '' : `, delivery ${question.delivery_id}`}`;
  return `Evidence for ${of}${question.date === null ? '' : ` on ${question.date}`}`;
}

function section(bundled: BundledDelivery, says: readonly string[]): string {
  const { delivery, body, attempts } = bundled;
  const told = tellsOf(bundled);
  return [
    html`<section><h2>${delivery.kind === 'reminder' ? 'Reminder' : 'Event'} ${delivery.delivery_id}: ${delivery.state.replaceAll('_', ' ')}</h2>`,
    htmlList(says),
    raw`<h3>Timeline</h3>${htmlTable(['when', 'what', 'by'], timeline(bundled))}`,
    attempts.length === 0
      ? ''
      : raw`<h3>Attempts</h3>${htmlTable(
          ['no.', 'started', "host's clock", 'took', 'outcome', 'answer', "receiver's receipt"],
          attempts.map((a) => [
            String(a.attempt),
            instant(a.started_at ?? a.claimed_at),
            offsetOf(told.get(a.attempt) ?? {}),
            a.duration_ms === null ? '' : `${a.duration_ms} ms`,
            `${a.outcome ?? 'under way'}${a.late ? ', late' : ''}${a.shadow ? ', shadow' : ''}`,
            [a.status, a.error, a.response_excerpt].filter((v) => v !== null).join(' · '),
            findReceipt(told.get(a.attempt) ?? {}) ?? '',
          ]),
        )}`,
    html`<h3>${wasSent(bundled) ? 'What was sent' : 'What was to be sent'}</h3><p>SHA-256 <code>${body.sha256}</code>, idempotency key <code>${delivery.idempotency_key}</code></p>`,
    body.bytes === null
      ? html`<p class="note">Erased at ${instant(body.erased_at ?? '')}.</p>`
      : html`<pre>${Buffer.from(body.bytes, 'base64').toString()}</pre>`,
    '</section>',
  ].join('\n');
}

function offsetOf(told: Readonly<Record<string, unknown>>): string {
  const offset = clockOffset(told);
  return offset === undefined ? '' : signed(offset);
}

/** From the renewal date to the final state: what was decided, with the dates that it was about. */
function timeline({ delivery, source, trail }: BundledDelivery): string[][] {
  const dates: string[][] = [[instant(delivery.scheduled_at), 'DUE', '']];
  if (delivery.deadline_at !== null) dates.push([instant(delivery.deadline_at), 'DEADLINE', '']);
  if ('renewal_date' in source) dates.push([source.renewal_date, 'RENEWAL DATE', '']);
  return [...dates, ...trail.map((e) => [instant(e.at), inWords(e), e.actor])].sort(([a = ''], [b = '']) =>
    a < b ? -1 : Number(a > b),
  );
}

const WORDS: Readonly<Record<string, string>> = {
  schedule: 'scheduled',
  reschedule: 'rescheduled',
  recalculate: 'recalculated by a newer calendar',
  deliver: 'delivered',
  deliver_late: 'delivered; the answer came after the claim had expired',
  retry: 'failed, to be tried again',
  give_up: 'given up',
  lapse: 'the claim expired or was handed back; what the receiver did is not known',
  late_result: 'an answer came after the claim had expired, and changed nothing',
  miss: 'deadline missed: no call could end in time',
  hold: 'held, because its endpoint was paused or disabled',
  release: 'released',
  abandon: 'given up, because its endpoint is gone',
  cancel: 'cancelled',
  replay: 'replayed',
  replay_held: 'replayed, and held until its endpoint resumes',
  erase: 'payload erased',
};

function inWords(entry: TrailEntry): string {
  const told = readDetail(entry) ?? {};
  const decision = (told['decision'] ?? {}) as Readonly<Record<string, unknown>>;
  const receipt = findReceipt(told);
  const parts = [
    `${entry.entry}. ${WORDS[entry.event] ?? entry.event}`,
    told['attempt'] === undefined ? undefined : `attempt ${show(told['attempt'])}`,
    told['status'] === undefined ? undefined : `answered ${show(told['status'])}`,
    told['error'],
    receipt === undefined ? undefined : `receipt ${receipt}`,
    told['remote_address'] === undefined ? undefined : `at ${show(told['remote_address'])}`,
    told['certificate_sha256'] === undefined ? undefined : `certificate ${show(told['certificate_sha256'])}`,
    told['due_at'] === undefined ? undefined : `due at ${show(told['due_at'])}`,
    decision['reason'],
    ...(entry.event === 'reschedule' || entry.event === 'recalculate' ? moveParts(told) : [told['reason']]),
  ];
  return parts
    .filter((part) => part !== undefined && part !== null)
    .map(show)
    .join(' · ');
}

function show(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function operations({ operations: all }: Bundle): string {
  return raw`<h2>What people did, from how its endpoint was set</h2>${htmlTable(
    ['when', 'what', 'by'],
    all.map(({ operation: o }) => [
      instant(o.at),
      `${o.subject_id} ${o.event}: ${describeOperation(o.detail)}`,
      o.actor,
    ]),
  )}`;
}

const STYLE = `
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a; background: #fff }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2.2rem; border-bottom: 1px solid #bbb } h3 { font-size: 1rem }
h1, h2, h3, td, li { overflow-wrap: anywhere }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; vertical-align: top; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid #ddd }
th, td:first-child { white-space: nowrap } code, pre { font: 13px/1.4 ui-monospace, monospace; overflow-wrap: anywhere }
pre { white-space: pre-wrap; background: #f4f4f4; padding: .7rem }
.note { color: #555 } .good { border-left: 4px solid #1a7f37; padding-left: .7rem } .bad { border-left: 4px solid #b00020; padding-left: .7rem }
@media print {
  body { margin: 0; max-width: none; padding: 0; font-size: 11px }
  h2, h3 { break-after: avoid } tr, li { break-inside: avoid } pre { background: none; border: 1px solid #bbb }
}
@page { margin: 15mm }`;
