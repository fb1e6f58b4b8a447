import type { Fields, Log } from '../../src/runtime/log.ts';
import { isOutage } from '../../src/runtime/outage.ts';

export interface LogLine {
  readonly level: 'error' | 'warn' | 'info' | 'debug';
  readonly event: string;
  readonly fields: Fields;
}

export interface RecordedLog {
  readonly log: Log;
  readonly lines: LogLine[];
}

/** A log that keeps its lines, so that a test can ask what was told. */
export function recordLog(): RecordedLog {
  const lines: LogLine[] = [];
  const withFields = (base: Fields): Log => {
    const at =
      (level: LogLine['level']) =>
      (event: string, fields: Fields = {}): void => {
        lines.push({ level, event, fields: { ...base, ...fields } });
      };
    return {
      error: at('error'),
      warn: at('warn'),
      info: at('info'),
      debug: at('debug'),
      fault: (event, error, fields = {}) =>
        at(isOutage(error) ? 'warn' : 'error')(event, { ...fields, error }),
      child: (fields) => withFields({ ...base, ...fields }),
      flush: () => Promise.resolve(),
    };
  };
  return { log: withFields({}), lines };
}
