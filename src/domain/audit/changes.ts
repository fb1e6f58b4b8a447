import { canonicalJson } from '../json.ts';
import { readDetailText } from './chain.ts';

type Told = Readonly<Record<string, unknown>>;

const NAMES: Readonly<Record<string, string>> = {
  renewal_date: 'renewal',
  notice_period: 'notice',
  due_at: 'due',
  deadline_at: 'deadline',
};

/**
 * What differs between `from` and `to` of a detail, one text for each member: `renewal 2027-12-31 → 2027-01-31`.
 *
 * @returns undefined: it tells of no change from something to something
 */
export function changesIn(told: Told): string[] | undefined {
  const { from, to } = told;
  if (!isTold(from) || !isTold(to)) return undefined;
  return [...new Set([...Object.keys(from), ...Object.keys(to)])]
    .filter((name) => canonicalJson(from[name] ?? null) !== canonicalJson(to[name] ?? null))
    .map((name) => `${NAMES[name] ?? name} ${show(from[name])} → ${show(to[name])}`);
}

/** The detail of an operation for people: of a change what differs; of all else what it says. */
export function describeOperation(detail: string): string {
  const told = readDetailText(detail);
  if (told === undefined) return detail;
  const changes = changesIn(told);
  if (changes === undefined) return members(told);
  const { from: _, to: __, ...rest } = told;
  return [...(changes.length === 0 ? ['nothing differs'] : changes), members(rest)]
    .filter(Boolean)
    .join(', ');
}

function members(told: Told): string {
  return Object.entries(told)
    .map(([name, value]) => `${name} ${show(value)}`)
    .join(', ');
}

function show(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? null);
}

function isTold(value: unknown): value is Told {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
