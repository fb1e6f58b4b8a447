import { expect, test } from 'vitest';
import { policyInUse } from '../../src/domain/policy.ts';
import { planAttempts } from '../../src/domain/retry-plan.ts';

const DAY_MS = 86_400_000;

test('a schedule is planned as it is written', () => {
  const policy = policyInUse(undefined, { kind: 'event', hasDeadline: false });
  expect(planAttempts(policy, { marginMs: undefined, timeoutMs: 10_000 })).toEqual([
    0, 30_000, 150_000, 750_000, 2_550_000, 9_750_000, 31_350_000, 74_550_000,
  ]);
});

test('a deadline policy reaches from the first attempt to the last call, within its attempts', () => {
  const policy = policyInUse(undefined, { kind: 'reminder', hasDeadline: true });
  const plan = planAttempts(policy, { marginMs: 7 * DAY_MS, timeoutMs: 10_000 });
  expect(plan).toHaveLength(12);
  expect(plan.slice(0, 3)).toEqual([0, 300_000, 600_000]);
  expect(plan.at(-1)).toBe(7 * DAY_MS - 15_000);
});

test('without time for a second attempt there is one', () => {
  const policy = policyInUse(undefined, { kind: 'reminder', hasDeadline: true });
  expect(planAttempts(policy, { marginMs: 10_500, timeoutMs: 10_000 })).toEqual([0]);
});
