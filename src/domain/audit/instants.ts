/** An instant for people, to the millisecond. */
export function instant(text: string): string {
  return text.replace(/(\.\d{3})\d*Z$/, '$1Z');
}

/** Milliseconds from one instant to another; negative when the second is earlier. */
export function msBetween(from: string, to: string): number {
  return Date.parse(to) - Date.parse(from);
}

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
] as const;

/** How long something took, for people, in the largest unit of which it has two: `90 seconds`, `5 days`. */
export function spell(ms: number): string {
  const [unit, unitMs] = UNITS.find(([, size]) => ms >= 2 * size) ?? ['second', 1_000];
  const count = Math.floor(ms / unitMs);
  if (count === 0) return 'less than a second';
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}
