/** One condition of a list that may be asked for or not. */
export interface Condition {
  /** Distinguishes the statement: each combination is prepared once. */
  readonly name: string;
  /** Undefined: not asked for. */
  readonly value: unknown;
  /** Fixed text around the parameter. */
  readonly text: (parameter: string) => string;
}

/**
 * The conditions that are asked for, and only those: one that a null may switch off hides from the planner which index
 * to use, and how few rows are needed.
 *
 * @param values  the parameters before these
 */
export function chooseConditions(
  conditions: readonly Condition[],
  values: readonly unknown[] = [],
): { readonly suffix: string; readonly where: string; readonly values: unknown[] } {
  const asked = conditions.filter((condition) => condition.value !== undefined);
  return {
    suffix: asked.map(({ name }) => `_${name}`).join(''),
    where: ['true', ...asked.map(({ text }, i) => text(`$${values.length + i + 1}`))].join('\n         and '),
    values: [...values, ...asked.map(({ value }) => value)],
  };
}
