/** The members that were given: those that are undefined are left out. */
export function present<T>(members: Readonly<Record<string, T | undefined>>): Record<string, T> {
  return Object.fromEntries(
    Object.entries(members).filter((member): member is [string, T] => member[1] !== undefined),
  );
}
