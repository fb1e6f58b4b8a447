import { expect, test } from 'vitest';
import { attachedReceipts } from '../../../src/domain/audit/attached-receipts.ts';
import { type Bundle, type BundledDelivery, closeBundle } from '../../../src/domain/audit/bundle.ts';
import { describeOperation } from '../../../src/domain/audit/changes.ts';
import { evidencePage } from '../../../src/domain/audit/page.ts';
import { story } from '../../../src/domain/audit/story.ts';

const HASH = '0'.repeat(64);
const DUE = '2027-03-01T08:00:00.000000Z';
const DEADLINE = '2027-03-31T00:00:00.000000Z';

const PROOF = JSON.stringify({
  steps: [
    { rule: 'closed', note: 'Saturday, 27 February 2027 is closed: weekend.' },
    { rule: 'opening', note: 'Monday, 1 March 2027 opens at 09:00.' },
  ],
  calendar_code: 'DE-BY',
  calendar_sha256: HASH,
  holiday_library: 'date-holidays@3.37.0',
  tz_version: '2025c',
});

type Row = BundledDelivery['attempts'][number];

function attempt(more: Partial<Row> = {}): Row {
  return {
    attempt: 1,
    cycle: 1,
    claimed_at: DUE,
    claimed_by: 'worker',
    url: 'https://notices.example/',
    outcome: 'delivered',
    late: false,
    status: 200,
    error: null,
    detail: null,
    started_at: DUE,
    finished_at: DUE,
    duration_ms: 12,
    retry_after_seconds: null,
    retry_after_clamped: false,
    next_due_at: null,
    response_excerpt: null,
    shadow: false,
    ...more,
  };
}

/** An entry of the trail; hashes do not matter here. */
function entry(number: number, event: string, detail: object, at = DUE): BundledDelivery['trail'][number] {
  return { entry: number, at, event, actor: 'cli:ann', detail: JSON.stringify(detail), sha256: HASH };
}

/** A reminder that was due on 1 March and has not ended. */
function reminder(
  more: Partial<Pick<BundledDelivery, 'attempts' | 'trail'>> & { readonly lateStart?: boolean } = {},
): BundledDelivery {
  const attempts = more.attempts ?? [];
  return {
    delivery: {
      delivery_id: 'dlv_1',
      kind: 'reminder',
      source_id: 'rem_1',
      endpoint_id: 'ep_1',
      contract_ref: 'pol-1',
      idempotency_key: 'reminder:pol-1:2027-12-31',
      state: 'due',
      dead_reason: null,
      due_at: DUE,
      scheduled_at: DUE,
      deadline_at: DEADLINE,
      attempt: attempts.length,
      attempt_base: 0,
      cycle: 1,
      revision: 1,
      created_at: DUE,
      ended_at: null,
      trail_length: 1,
      trail_sha256: HASH,
    },
    source: {
      reminder_id: 'rem_1',
      delivery_id: 'dlv_1',
      idempotency_key: 'reminder:pol-1:2027-12-31',
      content_sha256: HASH,
      endpoint_id: 'ep_1',
      contract_ref: 'pol-1',
      type: 'renewal.reminder',
      renewal_date: '2027-03-31',
      notice_period: 'P30D',
      jurisdiction: 'DE-BY',
      time_zone_given: null,
      time_zone: 'Europe/Berlin',
      deadline_period: null,
      deadline_given_at: null,
      due_at: DUE,
      deadline_at: DEADLINE,
      late_start: more.lateStart ?? false,
      due_proof: PROOF,
      revision: 1,
      created_at: DUE,
      updated_at: DUE,
    },
    body: { sha256: HASH, data_offset: 0, bytes: Buffer.from('{}').toString('base64'), erased_at: null },
    trail: more.trail ?? [entry(1, 'schedule', {})],
    attempts,
    records: [],
    seals: [],
  };
}

function bundleOf(delivery: BundledDelivery, receipts: Bundle['receipts'] = []): Bundle {
  return closeBundle(
    {
      format: 'duepost.evidence',
      v: 1,
      product: 'duepost',
      exported_at: DUE,
      exported_by: 'cli:ann',
      question: { contract_ref: 'pol-1', date: null, delivery_id: null },
      deliveries: [delivery],
      operations: [],
      seals: [],
      receipts,
    },
    undefined,
  );
}

function pageOf(delivery: BundledDelivery): string {
  const proof = { deliveries: [], vouched_for: true, proves: [], cannot: [] };
  return evidencePage(bundleOf(delivery), { findings: [], head: undefined, proof });
}

test('says why a reminder was due when it was, and by which calendar', () => {
  const says = story(reminder());
  expect(says).toContain(
    'Why that instant: Saturday, 27 February 2027 is closed: weekend. Monday, 1 March 2027 opens at 09:00.',
  );
  expect(says.join('\n')).toContain(`calendar DE-BY (SHA-256 ${HASH}), holidays by date-holidays@3.37.0`);
});

test('says that a reminder was accepted only after it was due', () => {
  const trail = [entry(1, 'schedule', {}, '2027-03-29T08:00:00.000000Z')];
  expect(story(reminder({ trail, lateStart: true }))).toContain(
    'It was accepted only at 2027-03-29T08:00:00.000Z, 28 days after it was due, and so was to be sent at once.',
  );
  expect(story(reminder({ trail })).join('\n')).not.toContain('only at');
});

test('says what a reschedule moved, from what to what, who did it and why; and that the key stays', () => {
  const detail = {
    applied: 'full',
    reason: 'the customer asked',
    from: { renewal_date: '2027-12-31', notice_period: 'P30D', due_at: '2027-12-01T08:00:00.000Z' },
    to: { renewal_date: '2027-03-31', notice_period: 'P30D', due_at: '2027-03-01T08:00:00.000Z' },
  };
  const moved = reminder({ trail: [entry(1, 'schedule', {}), entry(2, 'reschedule', detail)] });
  const what =
    'renewal 2027-12-31 → 2027-03-31, due 2027-12-01T08:00:00.000Z → 2027-03-01T08:00:00.000Z, the body says so';
  expect(story(moved)).toContain(
    `Rescheduled at 2027-03-01T08:00:00.000Z by cli:ann: ${what}: the customer asked.`,
  );
  expect(story(moved).join('\n')).toContain('stays the one it was accepted under, reminder:pol-1:2027-12-31');
  expect(pageOf(moved)).toContain(`2. rescheduled · ${what} · the customer asked`);
});

test.each<[string, Row[], string]>([
  ['no attempt was made', [], 'Nothing was sent: no attempt was made.'],
  ['it was in shadow mode', [attempt({ shadow: true })], 'every attempt was made in shadow mode.'],
])('says that nothing was sent when %s', (_, attempts, sentence) => {
  const unsent = reminder({ attempts });
  const says = story(unsent).join('\n');
  expect(says).toContain(sentence);
  expect(says).toContain('What was to be sent has the SHA-256');
  expect(says).not.toContain('The bytes have');
  expect(pageOf(unsent)).toContain('<h3>What was to be sent</h3>');
  expect(pageOf(unsent)).not.toContain('What was sent');
});

test('says that nothing was sent by an attempt that never got to a call', () => {
  const attempts = [attempt({ status: null, outcome: 'retryable', error: 'dns_failed' })];
  const trail = [entry(1, 'schedule', {}), entry(2, 'retry', { attempt: 1, sent: false })];
  const says = story(reminder({ attempts, trail })).join('\n');
  expect(says).toContain('nothing was sent (dns_failed)');
  expect(says).toContain('Nothing was sent: no attempt got as far as that.');
});

test('has what was sent as what was sent, with the clock of the host that sent it', () => {
  const trail = [entry(1, 'schedule', {}), entry(2, 'deliver', { attempt: 1, host_clock_offset_ms: -7 })];
  const sent = reminder({ attempts: [attempt()], trail });
  expect(story(sent).join('\n')).toContain(
    'the receiver answered 200 (clock of its host against the database: -7 ms',
  );
  expect(pageOf(sent)).toContain('<h3>What was sent</h3>');
  expect(pageOf(sent)).toContain('<td>-7 ms</td>');
});

test('a page says which hash the file has, and how to compute it', () => {
  const page = pageOf(reminder());
  expect(page).toContain(`whose member <code>sha256</code> is <code>${bundleOf(reminder()).sha256}</code>`);
  expect(page).toContain('del(.sha256,.signature)');
});

test.each<[string, string, string[]]>([
  ['before any attempt', '2027-03-01T07:00:00Z', ['That is before any attempt began']],
  ['before the first 2xx', '2027-03-01T08:00:30Z', ['That is before attempt 2 of 2027-03-01T08:01:00.000Z']],
  ['after it', '2027-03-01T08:01:00.500Z', []],
])('names an effect that is recorded %s', (_, effectAt, expected) => {
  const attempts = [
    attempt({ status: 503, outcome: 'retryable' }),
    attempt({ attempt: 2, started_at: '2027-03-01T08:01:00.000000Z' }),
  ];
  const delivery = reminder({ attempts });
  const { idempotency_key } = delivery.delivery;
  const receipt = { idempotency_key, effect_at: effectAt, body_sha256: null, effects: 1, text: '' };
  const [, ...says] = attachedReceipts(bundleOf(delivery, [receipt]), delivery);
  expect(says).toEqual(expected.map((text) => expect.stringContaining(text)));
});

test('of an operation that changed something it says only what differs', () => {
  const settings = { name: 'notices', url: 'https://a.example/', mode: 'live' };
  const detail = { from: settings, to: { ...settings, url: 'https://b.example/' }, reason: 'moved' };
  expect(describeOperation(JSON.stringify(detail))).toBe(
    'url https://a.example/ → https://b.example/, reason moved',
  );
  expect(describeOperation('{"reason":"a rest"}')).toBe('reason a rest');
});
