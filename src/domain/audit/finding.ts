/** Something that is not as it was written, or does not fit the rest. */
export interface Finding {
  /** What it is about: `delivery dlv_…`, `trail entry 3 of dlv_…`, `seal 12`. */
  readonly where: string;
  readonly what: string;
}

/** Collects findings; `expect` adds one unless what it is given holds. */
export interface Findings {
  readonly list: readonly Finding[];
  add(where: string, what: string): void;
  expect(holds: boolean, where: string, what: string): void;
}

export function collectFindings(): Findings {
  const list: Finding[] = [];
  const add = (where: string, what: string): void => {
    list.push({ where, what });
  };
  return {
    list,
    add,
    expect(holds, where, what) {
      if (!holds) add(where, what);
    },
  };
}
