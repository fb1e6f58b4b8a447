import { expect, test } from 'vitest';
import { closeBundle } from '../../../src/domain/audit/bundle.ts';
import { evidencePage } from '../../../src/domain/audit/page.ts';

const nasty = `<img src=x onerror=alert(1)>"'&\u202e\u0007`;

const bundle = closeBundle(
  {
    format: 'duepost.evidence',
    v: 1,
    product: 'duepost',
    exported_at: '2027-03-01T08:00:00.000000Z',
    exported_by: nasty,
    question: { contract_ref: nasty, date: null, delivery_id: null },
    deliveries: [],
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
    proof: { deliveries: [], vouched_for: true, proves: [nasty], cannot: [nasty] },
  });
  expect(page).not.toContain('<img');
  expect(page).not.toContain('\u202e');
  expect(page).not.toContain('\u0007');
  expect(page.match(/&lt;img src=x onerror=alert\(1\)&gt;&quot;&#39;&amp;\\u\{202e\}\\u\{7\}/g)).toHaveLength(
    11,
  );
});

test('says first of all when the evidence is not sound', () => {
  const report = { head: undefined, proof: { deliveries: [], vouched_for: false, proves: [], cannot: [] } };
  const bad = evidencePage(bundle, { ...report, findings: [{ where: 'file', what: 'it was changed' }] });
  expect(bad).toContain('This evidence is NOT sound');
  expect(bad).toContain('file: it was changed');
  const unsigned = evidencePage(bundle, { ...report, findings: [] });
  expect(unsigned).not.toContain('NOT sound');
  expect(unsigned).toContain('not all of it is sealed, and the file is not signed');
});
