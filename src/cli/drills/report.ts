import type { Finding } from './drill.ts';
import type { HandedOn } from './receiver.ts';

/** How a drill ended, as `--json` shows it. */
export interface DrillReport {
  readonly name: string;
  readonly title: string;
  readonly ok: boolean;
  readonly duration_ms: number;
  readonly findings: readonly (Finding & { readonly ok: boolean })[];
  /** Of each the service's own record must show one effect; undefined: no service was given. */
  readonly to_check?: readonly ToCheck[];
  /** Why it could not be brought about; undefined: it was. */
  readonly error?: string;
}

interface ToCheck {
  readonly idempotency_key: string;
  readonly delivery_id: string | null;
  /** Of the service, one for each call; null: none came. */
  readonly answers: readonly (number | null)[];
  readonly receipts: readonly string[];
}

/** What the owner of the service is told to look for. */
export function toCheck({ key, deliveryId, answers, receipts }: HandedOn): ToCheck {
  return {
    idempotency_key: key,
    delivery_id: deliveryId ?? null,
    answers: answers.map((status) => status ?? null),
    receipts,
  };
}

function formatToCheck({ idempotency_key: key, answers, receipts }: ToCheck): string {
  const said = answers.map((status) => status ?? 'no answer').join(', ');
  return `    ${key}  ${said}${receipts.length === 0 ? '' : `  ${receipts.join(', ')}`}`;
}

export function formatReport({ name, title, findings, error, to_check, ...report }: DrillReport): string {
  const width = Math.max(0, ...findings.map(({ what }) => what.length));
  return [
    `${report.ok ? 'ok    ' : 'FAILED'}  ${name}: ${title} (${(report.duration_ms / 1000).toFixed(1)} s)`,
    ...findings.map(
      ({ what, expected, seen, ok }) =>
        `  ${ok ? '  ' : '! '}${what.padEnd(width)}  expected ${expected}, seen ${seen}`,
    ),
    ...(to_check === undefined
      ? []
      : ['  look in the record of your service: one effect for each of', ...to_check.map(formatToCheck)]),
    ...(error === undefined ? [] : [`  ! could not be brought about: ${error}`]),
    '',
  ].join('\n');
}
