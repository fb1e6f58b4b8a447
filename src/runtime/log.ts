import winston from 'winston';
import type { Config } from './config.ts';
import { humanLine, jsonLine } from './log-line.ts';
import { isOutage, reasonOf } from './outage.ts';

export { scrub } from './scrub.ts';

/** What is told besides the name of the event. */
export type Fields = Record<string, unknown>;

/** Writes one line per event, whatever is in it; never throws. */
export interface Log {
  error(event: string, fields?: Fields): void;
  warn(event: string, fields?: Fields): void;
  info(event: string, fields?: Fields): void;
  debug(event: string, fields?: Fields): void;
  /**
   * An error as it came, with its code, stack and causes, under the field `error`. An outage is a warning with nothing
   * but its `reason`.
   */
  fault(event: string, error: unknown, fields?: Fields): void;
  /** The same log with fields that every line carries. */
  child(fields: Fields): Log;
  /** Resolves when everything written so far has left the process, or after 2 s when nobody reads it; never rejects. */
  flush(): Promise<void>;
}

const LONGEST_FLUSH_MS = 2_000;

type Level = Config['log']['level'];

/** Opens the log of a process, on stderr if not told otherwise. */
export function openLog(config: Config['log'], stream: NodeJS.WritableStream = process.stderr): Log {
  const toLine = config.format === 'json' ? jsonLine : humanLine;
  const logger = winston.createLogger({
    level: config.level,
    levels: { error: 0, warn: 1, info: 2, debug: 3 },
    format: winston.format.printf((info) => String(info['line'])),
    transports: [new winston.transports.Stream({ stream, eol: '\n' })],
  });
  // A reader that has gone away must not take the process with it.
  if (!stream.listeners('error').includes(ignore)) stream.on('error', ignore);

  function write(level: Level, event: string, fields: Fields): void {
    if (!logger.isLevelEnabled(level)) return;
    const at = new Date();
    let line: string;
    try {
      line = toLine({ at, level, event: String(event), fields });
    } catch {
      line = toLine({ at, level, event: 'log.unreadable', fields: {} });
    }
    // The line is made here and not by winston, which merges fields into its own and prints nested errors as {}.
    logger.log({ level, message: '', line });
  }

  function withFields(base: Fields): Log {
    const at = (level: Level) => (event: string, fields?: Fields) =>
      write(level, event, { ...base, ...fields });
    return {
      error: at('error'),
      warn: at('warn'),
      info: at('info'),
      debug: at('debug'),
      fault: (event, error, fields) =>
        isOutage(error)
          ? write('warn', event, { ...base, ...fields, reason: reasonOf(error) })
          : write('error', event, { ...base, ...fields, error }),
      child: (fields) => withFields({ ...base, ...fields }),
      flush: () => flush(stream),
    };
  }
  return withFields({});
}

/** Needed before an exit: Node drops what a slow reader of a pipe has not taken yet. */
function flush(stream: NodeJS.WritableStream): Promise<void> {
  return new Promise((resolve) => {
    const limit = setTimeout(resolve, LONGEST_FLUSH_MS);
    // Winston hands lines on at once, so an empty write comes after all of them.
    stream.write('', () => {
      clearTimeout(limit);
      resolve();
    });
  });
}

function ignore(): void {}
