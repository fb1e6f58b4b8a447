import { FINDING_KINDS, type ReconciledRow } from '../../domain/shadow/reconcile.ts';
import type { ShadowReport } from './report.ts';

/** How many rows match, and how many have a finding of each kind. */
export function summarize(rows: readonly ReconciledRow[]): Record<string, number> {
  const count = (kind: string): number =>
    rows.filter((row) => row.findings.some((finding) => finding.kind === kind)).length;
  return {
    rows: rows.length,
    matched: rows.filter((row) => row.findings.length === 0).length,
    ...Object.fromEntries(FINDING_KINDS.map((kind) => [kind, count(kind)])),
  };
}

/** A report as callers see it: every row, those that differ with what is the matter. */
export function shadowReportView(report: ShadowReport): Record<string, unknown> {
  return {
    from: report.from.toISOString(),
    to: report.to.toISOString(),
    generated_at: report.generatedAt.toISOString(),
    endpoints: report.endpoints.map((e) => ({ endpoint_id: e.endpointId, name: e.name })),
    passed: report.passed,
    reasons: report.reasons,
    compared_with: report.hasExpected ? ['calendar', 'expected'] : ['calendar'],
    summary: summarize(report.rows),
    coverage: {
      dates: report.coverage.dates,
      jurisdictions: report.coverage.jurisdictions.map((j) => ({
        jurisdiction: j.jurisdiction,
        time_zone: j.timeZone,
        deliveries: j.deliveries,
        weekend_dates: j.weekendDates,
        holidays: j.holidays,
        idle_dates: j.idleDates,
      })),
    },
    rows: report.rows.map(rowView),
  };
}

/** One row, flat, as in the report's CSV. */
export function rowView({ ours, expected, findings }: ReconciledRow): Record<string, unknown> {
  return {
    delivery_id: ours?.deliveryId ?? expected?.deliveryId ?? null,
    reminder_id: ours?.reminderId ?? null,
    contract_ref: ours?.contractRef ?? expected?.contractRef,
    jurisdiction: ours?.jurisdiction ?? null,
    state: ours?.state ?? null,
    due_at: ours?.dueAt.toISOString() ?? null,
    recomputed_due_at: ours?.recomputedAt instanceof Date ? ours.recomputedAt.toISOString() : null,
    expected_due_at: expected?.dueAt.toISOString() ?? null,
    expected_line: expected?.line ?? null,
    first_attempt_at: ours?.firstAttemptAt?.toISOString() ?? null,
    findings: findings.map(({ kind, note, byMs, against }) => ({
      kind,
      note,
      ...(byMs === undefined ? {} : { by_ms: byMs, against }),
    })),
  };
}
