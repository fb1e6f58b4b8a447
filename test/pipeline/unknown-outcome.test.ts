import { expect, test } from 'vitest';
import { parsePolicy } from '../../src/domain/policy.ts';
import { handBack, lapse } from '../../src/pipeline/deliver/unknown-outcome.ts';
import type { Claim } from '../../src/store/verdict.ts';

const THREE = parsePolicy({ kind: 'schedule', retry_schedule: [0], max_attempts: 3 });
const claim = { deliveryId: 'dlv_1', attempt: 3, cycle: 1, revision: 1 } as Claim;
const expired = {
  verdict: 'lapsed',
  attempt: 3,
  attemptOfCycle: 3,
  kind: 'event',
  endpointId: 'ep_1',
  endpointRevision: 1,
  hasDeadline: false,
  ours: false,
} as const;

test.each([
  [{ why: 'no time' }, 'lapse', 'not_sent'],
  [{ why: 'no time', isLast: true }, 'lapse', 'not_sent'],
  [{ why: 'a fault', sent: true }, 'lapse', 'aborted'],
  [{ why: 'a fault', sent: true, isLast: true }, 'give_up', 'aborted'],
] as const)('a claim given back as %j ends by %s', (how, decision, error) => {
  expect(handBack(claim, how)).toMatchObject({ decision, error, outcome: 'unknown', endpointFailed: false });
});

test.each([
  [expired, 'give_up'],
  [{ ...expired, attemptOfCycle: 2 }, 'lapse'],
  // Nobody called: there is one more to come.
  [{ ...expired, ours: true }, 'lapse'],
] as const)('a claim that nobody ended, %j, ends by %s', (verdict, decision) => {
  expect(lapse('dlv_1', verdict, THREE)).toMatchObject({ decision, outcome: 'unknown' });
});
