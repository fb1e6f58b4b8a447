import pg from 'pg';

const { builtins } = pg.types;

/** `2026-10-05 08:00:00.12+00` as PostgreSQL writes it in UTC, to RFC 3339 with microseconds. */
function toInstant(text: string): string {
  const found = /^(\d{4,6}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?\+00$/.exec(text);
  if (found === null) throw new RangeError(`${text} is no instant in UTC`);
  return `${found[1]}T${found[2]}.${(found[3] ?? '').padEnd(6, '0')}Z`;
}

const PARSERS = new Map<number, (text: string) => unknown>([
  [builtins.TIMESTAMPTZ, toInstant],
  [builtins.BYTEA, (text) => text.slice(2)],
  [builtins.INT4, Number],
  [builtins.BOOL, (text) => text === 't'],
]);

/**
 * Reads columns to the letter, as evidence needs them: instants to the microsecond, bytes in hex, JSON and everything
 * else as the text that the database writes.
 */
export const FACT_TYPES = {
  getTypeParser: (oid: number) => PARSERS.get(oid) ?? ((text: string) => text),
} as unknown as pg.CustomTypesConfig;
