import type { Stand } from './stand.ts';

/** One thing that a drill looked at. */
export interface Finding {
  readonly what: string;
  readonly expected: string;
  readonly seen: string;
}

/** A failure that is brought about on purpose, and what must come of it. */
export interface Drill {
  readonly name: string;
  readonly title: string;
  /** Brings it about and looks; throws when it could not be brought about. */
  run(stand: Stand): Promise<Finding[]>;
}

export function finding(what: string, expected: string | number, seen: string | number): Finding {
  return { what, expected: String(expected), seen: String(seen) };
}

export function isAsExpected({ expected, seen }: Finding): boolean {
  return expected === seen;
}
