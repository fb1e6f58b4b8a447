import { expect, test } from 'vitest';
import { findRisk, type RiskInput } from '../../src/domain/at-risk.ts';
import { DEFAULT_DEADLINE_POLICY, parsePolicy } from '../../src/domain/policy.ts';

const HOUR_MS = 3_600_000;

function input(changes: Partial<RiskInput>): RiskInput {
  return {
    state: 'due',
    marginMs: HOUR_MS,
    overdueMs: -1_000,
    attempts: 1,
    policy: DEFAULT_DEADLINE_POLICY,
    timeoutMs: 10_000,
    graceMs: 15_000,
    failures: 1,
    ...changes,
  };
}

test('a retry with an hour left is not at risk', () => {
  expect(findRisk(input({}))).toBeUndefined();
});

test('a margin that does not hold the attempts that remain is a risk', () => {
  // Each of ten seconds, and each after a second at least.
  const neededMs = (DEFAULT_DEADLINE_POLICY.maxAttempts - 1) * 11_000;
  expect(findRisk(input({ marginMs: neededMs }))).toBeUndefined();
  expect(findRisk(input({ marginMs: neededMs - 1 }))).toBe('margin');
});

test('a first attempt that is still to come in time is no risk, however short its margin was from the start', () => {
  expect(findRisk(input({ attempts: 0, marginMs: 20_000 }))).toBeUndefined();
  expect(findRisk(input({ attempts: 0, marginMs: 20_000, overdueMs: 15_001 }))).toBe('margin');
});

test('the waits of a schedule count', () => {
  const policy = parsePolicy({ kind: 'schedule', retry_schedule: [0, 60, 600], max_attempts: 3 });
  expect(findRisk(input({ policy, marginMs: 680_000 }))).toBeUndefined();
  expect(findRisk(input({ policy, marginMs: 679_999 }))).toBe('margin');
});

test('an endpoint that has failed five times in a row puts at risk what is due soon', () => {
  expect(findRisk(input({ failures: 4, attempts: 0 }))).toBeUndefined();
  expect(findRisk(input({ failures: 5, attempts: 0 }))).toBe('endpoint_failing');
});

test('what is held is at risk from the moment it is due', () => {
  expect(findRisk(input({ state: 'held', overdueMs: -1, failures: 9 }))).toBeUndefined();
  expect(findRisk(input({ state: 'held', overdueMs: 0 }))).toBe('held');
});
