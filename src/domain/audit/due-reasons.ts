import { readDetailText } from './chain.ts';

/**
 * Why a reminder is due when it is: the steps of the computation and what they were computed with, one sentence each.
 *
 * @param proof  as it is stored with the reminder: JSON
 * @returns nothing where the proof has no steps
 */
export function dueReasons(proof: string): string[] {
  const told = readDetailText(proof) ?? {};
  const steps = Array.isArray(told['steps']) ? (told['steps'] as unknown[]) : [];
  const notes = steps.flatMap((step) => {
    const note = (step as { readonly note?: unknown } | null)?.note;
    return typeof note === 'string' ? [note] : [];
  });
  if (notes.length === 0) return [];
  return [
    `Why that instant: ${notes.join(' ')}`,
    `Computed with the calendar ${text(told['calendar_code'])} (SHA-256 ${text(told['calendar_sha256'])}), holidays by ${text(told['holiday_library'])}, time zones ${text(told['tz_version'])}.`,
  ];
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '?';
}
