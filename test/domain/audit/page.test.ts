import { expect, test } from 'vitest';
import { type BundledDelivery, closeBundle } from '../../../src/domain/audit/bundle.ts';
import { evidencePage } from '../../../src/domain/audit/page.ts';
import { faultsOfPage } from '../../support/html.ts';

const nasty = `<img src=x onerror=alert(1)>"'&\u202e\u0007`;

const AT = '2027-03-01T08:00:00.000000Z';

/** A delivery of which everything that came from outside is nasty. */
const delivery: BundledDelivery = {
  delivery: {
    delivery_id: 'dlv_1',
    kind: 'event',
    source_id: 'evt_1',
    endpoint_id: 'ep_1',
    contract_ref: nasty,
    idempotency_key: nasty,
    state: 'delivered',
    dead_reason: null,
    due_at: null,
    scheduled_at: AT,
    deadline_at: null,
    attempt: 1,
    attempt_base: 0,
    cycle: 1,
    revision: 0,
    created_at: AT,
    ended_at: AT,
    trail_length: 1,
    trail_sha256: '0'.repeat(64),
  },
  source: {
    event_id: 'evt_1',
    idempotency_key: nasty,
    content_sha256: '0'.repeat(64),
    type: nasty,
    contract_ref: nasty,
    answer: nasty,
    created_at: AT,
  },
  body: {
    sha256: '0'.repeat(64),
    data_offset: 0,
    bytes: Buffer.from(nasty).toString('base64'),
    erased_at: null,
  },
  trail: [
    {
      entry: 1,
      at: AT,
      event: 'deliver',
      actor: nasty,
      detail: JSON.stringify({ attempt: 1, status: 200, response_headers: { 'webhook-receipt': nasty } }),
      sha256: '0'.repeat(64),
    },
  ],
  attempts: [
    {
      attempt: 1,
      cycle: 1,
      claimed_at: AT,
      claimed_by: 'worker',
      started_at: AT,
      finished_at: AT,
      outcome: 'delivered',
      late: false,
      status: 200,
      error: nasty,
      detail: nasty,
      duration_ms: 12,
      url: nasty,
      retry_after_seconds: null,
      retry_after_clamped: false,
      next_due_at: null,
      response_excerpt: nasty,
      shadow: false,
    },
  ],
  records: [],
  seals: [],
};

const bundle = closeBundle(
  {
    format: 'duepost.evidence',
    v: 1,
    product: 'duepost',
    exported_at: '2027-03-01T08:00:00.000000Z',
    exported_by: nasty,
    question: { contract_ref: nasty, date: null, delivery_id: null },
    deliveries: [delivery],
    operations: [
      {
        operation: {
          operation_id: '1',
          at: '2027-03-01T08:00:00.000000Z',
          subject_id: nasty,
          event: nasty,
          actor: nasty,
          detail: nasty,
        },
        seal: null,
      },
    ],
    seals: [],
    receipts: [],
  },
  undefined,
);

test('escapes whatever comes from outside, the title included', () => {
  const page = evidencePage(bundle, {
    findings: [{ where: nasty, what: nasty }],
    head: undefined,
    proof: {
      deliveries: [{ delivery_id: 'dlv_1', says: [nasty] }],
      vouched_for: true,
      proves: [nasty],
      cannot: [nasty],
    },
  });
  expect(faultsOfPage(page)).toEqual([]);
  expect(page).not.toContain('<img');
  expect(page).not.toContain('\u202e');
  expect(page).not.toContain('\u0007');
  expect(page.match(/&lt;img src=x onerror=alert\(1\)&gt;&quot;&#39;&amp;\\u\{202e\}\\u\{7\}/g)).toHaveLength(
    19,
  );
});

test('says first of all when the evidence is not sound', () => {
  const report = { head: undefined, proof: { deliveries: [], vouched_for: false, proves: [], cannot: [] } };
  const bad = evidencePage(bundle, { ...report, findings: [{ where: 'file', what: 'it was changed' }] });
  expect(bad).toContain('This evidence is NOT sound');
  expect(bad).toContain('file: it was changed');
  const unsigned = evidencePage(bundle, { ...report, findings: [] });
  expect(unsigned).not.toContain('NOT sound');
  expect(unsigned).toContain(
    'the file is not signed: deliveries, operations and receipts may have been left out',
  );
});
