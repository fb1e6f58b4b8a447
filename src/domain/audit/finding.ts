/** Something that is not as it was written, or does not fit the rest. */
export interface Finding {
  /** What it is about: `delivery dlv_…`, `trail entry 3 of dlv_…`, `seal 12`. */
  readonly where: string;
  readonly what: string;
  /** The id of the key that a signature names and that was not given: it could not be checked, which proves nothing. */
  readonly unknown_key?: string;
}

/** Collects findings; `expect` adds one unless what it is given holds. */
export interface Findings {
  readonly list: readonly Finding[];
  add(where: string, what: string, unknownKey?: string): void;
  expect(holds: boolean, where: string, what: string): void;
}

export function collectFindings(): Findings {
  const list: Finding[] = [];
  const add: Findings['add'] = (where, what, unknownKey) => {
    list.push({ where, what, ...(unknownKey === undefined ? {} : { unknown_key: unknownKey }) });
  };
  return {
    list,
    add,
    expect(holds, where, what) {
      if (!holds) add(where, what);
    },
  };
}

/** What speaks against it, and the keys without which the rest could not be checked. */
export function splitFindings(findings: readonly Finding[]): {
  readonly against: readonly Finding[];
  readonly unchecked: readonly Finding[];
  readonly unknownKeys: readonly string[];
} {
  const unchecked = findings.filter((f) => f.unknown_key !== undefined);
  return {
    against: findings.filter((f) => f.unknown_key === undefined),
    unchecked,
    unknownKeys: [...new Set(unchecked.flatMap((f) => f.unknown_key ?? []))],
  };
}
