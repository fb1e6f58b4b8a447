import type { Fields, Log } from './log.ts';

/** Lines of one event that are written in a second. */
const MOST_PER_SECOND = 20;
const SECOND_MS = 1_000;

/**
 * The same log, in which warnings and errors of one event are written twenty times a second at most; how many were not
 * is told once the second is over. What is written at other levels is left alone.
 */
export function withoutFloods(log: Log): Log {
  const counts = new Map<string, number>();

  function isWritten(event: string): boolean {
    const count = (counts.get(event) ?? 0) + 1;
    counts.set(event, count);
    if (count === 1) setTimeout(() => endSecond(event), SECOND_MS).unref();
    return count <= MOST_PER_SECOND;
  }

  function endSecond(event: string): void {
    const left = (counts.get(event) ?? 0) - MOST_PER_SECOND;
    counts.delete(event);
    if (left > 0) log.warn('log.flood', { of: event, not_written: left });
  }

  function around(inner: Log): Log {
    return {
      ...inner,
      warn: (event: string, fields?: Fields) => {
        if (isWritten(event)) inner.warn(event, fields);
      },
      error: (event: string, fields?: Fields) => {
        if (isWritten(event)) inner.error(event, fields);
      },
      fault: (event: string, error: unknown, fields?: Fields) => {
        if (isWritten(event)) inner.fault(event, error, fields);
      },
      child: (fields) => around(inner.child(fields)),
    };
  }
  return around(log);
}
