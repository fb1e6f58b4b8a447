import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { withoutFloods } from '../../src/runtime/flood.ts';
import { recordLog } from '../support/recorded-log.ts';

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

test('a flood of one event is told by twenty lines a second and the number of the rest', () => {
  const { log, lines } = recordLog();
  const calm = withoutFloods(log);
  for (let i = 0; i < 1_000; i += 1) calm.child({ part: 'a' }).warn('command_rejected', { i });
  calm.fault('another', new Error('once'));
  expect(lines.filter((line) => line.event === 'command_rejected')).toHaveLength(20);
  expect(lines.filter((line) => line.event === 'another')).toHaveLength(1);

  vi.advanceTimersByTime(1_000);
  expect(lines.at(-1)).toEqual({
    level: 'warn',
    event: 'log.flood',
    fields: { of: 'command_rejected', not_written: 980 },
  });

  calm.warn('command_rejected');
  expect(lines.at(-1)?.event).toBe('command_rejected');
});

test('what is told of attempts is never left out', () => {
  const { log, lines } = recordLog();
  const calm = withoutFloods(log);
  for (let i = 0; i < 100; i += 1) calm.info('attempt', { i });
  vi.advanceTimersByTime(1_000);
  expect(lines).toHaveLength(100);
});
