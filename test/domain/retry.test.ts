import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  DEFAULT_DEADLINE_POLICY,
  DEFAULT_SCHEDULE_POLICY,
  type DeadlinePolicy,
  type Policy,
  type SchedulePolicy,
} from '../../src/domain/policy.ts';
import {
  decideNext,
  delayByMargin,
  delayBySchedule,
  firstDelayMs,
  LAST_CALL_MARGIN_MS,
  type NextAttempt,
  type RetryInput,
} from '../../src/domain/retry.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const timeoutMs = 10 * SECOND;

const jitter = fc.constantFrom(0, 0, 0.1, 0.5);
const random = fc.double({ min: 0, max: 1, noNaN: true });
const statuses = { terminalStatuses: [], retryableStatuses: [] };
const deadlinePolicy: fc.Arbitrary<DeadlinePolicy> = fc
  .record({
    baseSeconds: fc.integer({ min: 1, max: 86_400 }),
    divisor: fc.integer({ min: 1, max: 20 }),
    maxAttempts: fc.integer({ min: 1, max: 30 }),
    reserve: fc.nat(30),
    jitter,
  })
  .map(({ reserve, ...rest }) => ({
    kind: 'deadline',
    ...rest,
    ...statuses,
    reserveAttempts: Math.min(reserve, rest.maxAttempts),
  }));
const schedulePolicy: fc.Arbitrary<SchedulePolicy> = fc.record({
  kind: fc.constant('schedule' as const),
  retrySchedule: fc.array(fc.integer({ min: 0, max: 86_400 }), { minLength: 1, maxLength: 12 }),
  maxAttempts: fc.integer({ min: 1, max: 30 }),
  jitter,
  terminalStatuses: fc.constant([]),
  retryableStatuses: fc.constant([]),
});
const anyPolicy: fc.Arbitrary<Policy> = fc.oneof(deadlinePolicy, schedulePolicy);
const marginMs = fc.oneof(
  fc.integer({ min: -MINUTE, max: MINUTE }),
  fc.integer({ min: 0, max: 40 * DAY }),
  fc.double({ min: 0, max: 2 * MINUTE, noNaN: true }),
);
const retryAfterMs = fc.option(fc.oneof(fc.nat(MINUTE), fc.nat(DAY)), { nil: undefined });
const input: fc.Arbitrary<RetryInput> = fc.record({
  policy: anyPolicy,
  attempt: fc.integer({ min: 1, max: 31 }),
  marginMs: fc.option(marginMs, { nil: undefined }),
  timeoutMs: fc.constantFrom(SECOND, timeoutMs, MINUTE),
  tookMs: fc.option(fc.nat(MINUTE), { nil: undefined }),
  retryAfterMs,
  random,
});

const common = { timeoutMs, random: 0 };
const reminder = (attempt: number, margin: number, more: Partial<RetryInput> = {}) =>
  next({ policy: DEFAULT_DEADLINE_POLICY, attempt, marginMs: margin, ...common, ...more });
const event = (attempt: number, more: Partial<RetryInput> = {}) =>
  next({ policy: DEFAULT_SCHEDULE_POLICY, attempt, ...common, ...more });

describe('the schedule', () => {
  it('is the one of the contract: eight attempts over about 21 hours', () => {
    const waits = [1, 2, 3, 4, 5, 6, 7].map((attempt) => event(attempt).delayMs / SECOND);
    expect(firstDelayMs(DEFAULT_SCHEDULE_POLICY)).toBe(0);
    expect(waits).toEqual([30, 120, 600, 1800, 7200, 21_600, 43_200]);
    expect(giveUp({ policy: DEFAULT_SCHEDULE_POLICY, attempt: 8, ...common })).toBe('attempts_exhausted');
  });

  it('repeats its last value, and counts past nine as numbers do', () => {
    const policy: SchedulePolicy = { ...DEFAULT_SCHEDULE_POLICY, retrySchedule: [5, 10], maxAttempts: 12 };
    expect(firstDelayMs(policy)).toBe(5000);
    expect([9, 10, 11].map((attempt) => event(attempt, { policy }).delayMs)).toEqual([
      10_000, 10_000, 10_000,
    ]);
    expect(giveUp({ policy, attempt: 12, ...common })).toBe('attempts_exhausted');
  });

  it('never waits under a second, even where it says so', () => {
    const policy: SchedulePolicy = { ...DEFAULT_SCHEDULE_POLICY, retrySchedule: [0], maxAttempts: 3 };
    expect(delayBySchedule(policy, 1)).toBe(1000);
    expect(event(1, { policy, retryAfterMs: 0 }).delayMs).toBe(1000);
  });

  it('is bounded by the deadline, where there is one', () => {
    const late = event(7, { marginMs: HOUR });
    expect(late).toMatchObject({ delayMs: HOUR - 15 * SECOND, lastCall: true, retryAfterClamped: false });
    expect(event(1, { marginMs: HOUR })).toMatchObject({ delayMs: 30_000, lastCall: false });
    const over = { policy: DEFAULT_SCHEDULE_POLICY, attempt: 2, marginMs: 9 * SECOND, ...common };
    expect(giveUp(over)).toBe('deadline_passed');
  });
});

describe('the wait until a deadline', () => {
  it('is five minutes while the deadline is days away, and a quarter of the rest when it is near', () => {
    expect(reminder(1, 3 * DAY).delayMs).toBe(5 * MINUTE);
    expect(reminder(1, 20 * MINUTE).delayMs).toBe(5 * MINUTE);
    expect(reminder(1, 9 * MINUTE).delayMs).toBe(2.25 * MINUTE);
    expect(reminder(1, 100 * SECOND).delayMs).toBe(25 * SECOND);
  });

  it('spreads the reserve over what is left, so that a week of failures ends at the deadline', () => {
    const starts = livesOf(DEFAULT_DEADLINE_POLICY, 7 * DAY);
    expect(starts).toHaveLength(12);
    expect(starts.slice(0, 8)).toEqual([0, 5, 10, 15, 20, 25, 30, 35].map((minutes) => minutes * MINUTE));
    const left = 7 * DAY - 35 * MINUTE;
    expect(starts[8]).toBe(35 * MINUTE + left / 4);
    expect(starts[9]).toBe(Math.floor(7 * DAY - left * (3 / 4) ** 2));
    expect(starts[11]).toBe(7 * DAY - timeoutMs - LAST_CALL_MARGIN_MS);
  });

  it('ends with a last call exactly at deadline − timeout − 5 s', () => {
    expect(reminder(11, DAY)).toEqual({
      delayMs: DAY - 15 * SECOND,
      lastCall: true,
      retryAfterClamped: false,
      reason: 'last call',
    });
    expect(giveUp({ policy: DEFAULT_DEADLINE_POLICY, attempt: 12, marginMs: DAY, ...common })).toBe(
      'attempts_exhausted',
    );
  });

  it('makes the next attempt the last call where a step would pass it', () => {
    // A quarter of 20 s is exactly the way to the last call.
    expect(reminder(2, 20 * SECOND)).toMatchObject({ delayMs: 5 * SECOND, lastCall: true });
    expect(reminder(2, 18 * SECOND)).toMatchObject({ delayMs: 3 * SECOND, lastCall: true });
    expect(reminder(2, 21 * SECOND)).toMatchObject({ delayMs: 5250, lastCall: false });
  });

  it('lets one attempt follow the floor where the last call is too close or was missed', () => {
    expect(reminder(2, 16 * SECOND)).toMatchObject({ delayMs: SECOND, lastCall: true });
    for (const margin of [15.5, 15, 14, 11]) {
      expect(reminder(2, margin * SECOND)).toMatchObject({ delayMs: SECOND, lastCall: false });
    }
    for (const margin of [10.999, 10, 5, 0.5, 0, -60]) {
      const late = { policy: DEFAULT_DEADLINE_POLICY, attempt: 2, marginMs: margin * SECOND, ...common };
      expect(giveUp(late)).toBe('deadline_passed');
    }
  });

  it('lets nothing follow an attempt that began at the last call or after it', () => {
    const asked = { policy: DEFAULT_DEADLINE_POLICY, attempt: 3, ...common };
    expect(giveUp({ ...asked, marginMs: 14_990, tookMs: 10 })).toBe('deadline_passed');
    expect(giveUp({ ...asked, marginMs: 15_000, tookMs: 0 })).toBe('deadline_passed');
    expect(giveUp({ ...asked, marginMs: 12_000, tookMs: 2_000 })).toBe('deadline_passed');
    // Began before it and ended after it: the last call is still to be made.
    expect(reminder(3, 12_000, { tookMs: 8_000 })).toMatchObject({ delayMs: SECOND });
  });

  it('is by the default schedule where there is no deadline', () => {
    const policy = DEFAULT_DEADLINE_POLICY;
    expect(next({ policy, attempt: 2, ...common }).delayMs).toBe(120_000);
    expect(giveUp({ policy, attempt: 8, ...common })).toBe('attempts_exhausted');
  });

  it('grows with the margin and stays between a second and the margin', () => {
    fc.assert(
      fc.property(
        deadlinePolicy,
        fc.integer({ min: 1, max: 30 }),
        marginMs,
        marginMs,
        (policy, attempt, a, b) => {
          const [less, more] = [
            delayByMargin(policy, attempt, Math.min(a, b)),
            delayByMargin(policy, attempt, Math.max(a, b)),
          ];
          if (less === undefined) return;
          expect(less).toBeGreaterThanOrEqual(SECOND);
          expect(less).toBeLessThanOrEqual(Math.min(a, b));
          expect(more).toBeGreaterThanOrEqual(less);
        },
      ),
    );
  });
});

describe('Retry-After', () => {
  it('moves the next attempt to the later of schedule and hint', () => {
    expect(event(1, { retryAfterMs: 900_000 })).toMatchObject({ delayMs: 900_000, reason: 'Retry-After' });
    expect(event(1, { retryAfterMs: 5_000 })).toMatchObject({
      delayMs: 30_000,
      reason: 'retry schedule, attempt 2',
    });
    expect(reminder(1, DAY, { retryAfterMs: 900_000 })).toMatchObject({
      delayMs: 900_000,
      lastCall: false,
      retryAfterClamped: false,
    });
  });

  it('past the last call makes the next attempt the last call, and says so', () => {
    for (const decided of [
      reminder(1, 10 * MINUTE, { retryAfterMs: 900_000 }),
      event(1, { marginMs: 10 * MINUTE, retryAfterMs: 900_000 }),
    ]) {
      expect(decided).toEqual({
        delayMs: 10 * MINUTE - 15 * SECOND,
        lastCall: true,
        retryAfterClamped: true,
        reason: 'last call, Retry-After points past it',
      });
    }
    expect(reminder(1, 16 * SECOND - 1, { retryAfterMs: 2_000 })).toMatchObject({
      delayMs: SECOND,
      retryAfterClamped: true,
    });
  });

  it('exactly at the last call was honoured', () => {
    const margin = 10 * MINUTE;
    expect(reminder(1, margin, { retryAfterMs: margin - 15 * SECOND })).toMatchObject({
      lastCall: true,
      retryAfterClamped: false,
    });
  });

  it('is never undercut, unless the deadline does it', () => {
    fc.assert(
      fc.property(input, fc.nat(DAY), (asked, hint) => {
        const decided = decideNext({ ...asked, retryAfterMs: hint });
        if ('giveUp' in decided) return;
        expect(decided.delayMs < hint).toBe(decided.retryAfterClamped);
        if (asked.marginMs === undefined) expect(decided.retryAfterClamped).toBe(false);
      }),
    );
  });

  it('never makes an attempt earlier by asking for more', () => {
    fc.assert(
      fc.property(input, fc.nat(DAY), fc.nat(DAY), (asked, hint, more) => {
        const less = decideNext({ ...asked, retryAfterMs: hint });
        const later = decideNext({ ...asked, retryAfterMs: hint + more });
        expect('giveUp' in later).toBe('giveUp' in less);
        if ('giveUp' in less || 'giveUp' in later) return;
        expect(later.delayMs).toBeGreaterThanOrEqual(less.delayMs);
      }),
    );
  });
});

describe('every decision', () => {
  it('is a whole number of milliseconds, never under a second, and never after deadline − timeout', () => {
    fc.assert(
      fc.property(input, (asked) => {
        const decided = decideNext(asked);
        if ('giveUp' in decided) return;
        expect(Number.isSafeInteger(decided.delayMs)).toBe(true);
        expect(decided.delayMs).toBeGreaterThanOrEqual(SECOND);
        expect(decided.reason).not.toBe('');
        const room = (asked.marginMs ?? Number.POSITIVE_INFINITY) - asked.timeoutMs;
        expect(decided.delayMs).toBeLessThanOrEqual(room);
        if (decided.lastCall) expect(decided.delayMs).toBe(Math.floor(room - LAST_CALL_MARGIN_MS));
        else if (decided.delayMs > SECOND) expect(decided.delayMs).toBeLessThan(room - LAST_CALL_MARGIN_MS);
      }),
      { numRuns: 2000 },
    );
  });

  it('gives up for attempts when they are used up, and otherwise only for the deadline', () => {
    fc.assert(
      fc.property(input, (asked) => {
        const decided = decideNext(asked);
        const { policy } = asked;
        const budget = policy.kind === 'deadline' && asked.marginMs === undefined ? 8 : policy.maxAttempts;
        if (asked.attempt >= budget) expect(decided).toMatchObject({ giveUp: 'attempts_exhausted' });
        else if ('giveUp' in decided) {
          expect(decided.giveUp).toBe('deadline_passed');
          expect(asked.marginMs).toBeDefined();
        }
      }),
    );
  });

  it('is only ever delayed by jitter, by its share at most, and not past the last call', () => {
    fc.assert(
      fc.property(input, (asked) => {
        const calm = decideNext({ ...asked, policy: { ...asked.policy, jitter: 0 } });
        const shaken = decideNext(asked);
        expect('giveUp' in shaken).toBe('giveUp' in calm);
        if ('giveUp' in calm || 'giveUp' in shaken) return;
        expect(shaken.delayMs).toBeGreaterThanOrEqual(calm.delayMs);
        expect(shaken.delayMs).toBeLessThanOrEqual(calm.delayMs * (1 + asked.policy.jitter));
        if (calm.lastCall) expect(shaken).toEqual(calm);
      }),
    );
  });

  it('uses its jitter', () => {
    const policy: SchedulePolicy = { ...DEFAULT_SCHEDULE_POLICY, jitter: 0.5 };
    expect([0, 0.5, 1].map((chance) => event(1, { policy, random: chance }).delayMs)).toEqual([
      30_000, 37_500, 45_000,
    ]);
  });
});

describe('the life of a delivery that always fails', () => {
  const margin = fc.oneof(
    fc.integer({ min: timeoutMs, max: 5 * MINUTE }),
    fc.integer({ min: MINUTE, max: 40 * DAY }),
  );
  const steps = fc.infiniteStream(fc.record({ retryAfterMs, random, tookMs: fc.nat(timeoutMs) }));

  it('has at most max_attempts attempts, in order, none after deadline − timeout', () => {
    fc.assert(
      fc.property(anyPolicy, margin, steps, fc.boolean(), (policy, deadline, stream, knowsDuration) => {
        const starts = livesOf(policy, deadline, (now) => {
          const { tookMs, ...step } = stream.next().value;
          return { ...step, endMs: now + tookMs, ...(knowsDuration ? { tookMs } : {}) };
        });
        expect(starts.length).toBeLessThanOrEqual(policy.maxAttempts);
        expect(starts.every((start, n) => n === 0 || start >= (starts[n - 1] ?? 0) + SECOND)).toBe(true);
        if (starts.length > 1) expect(starts.at(-1)).toBeLessThanOrEqual(deadline - timeoutMs);
      }),
    );
  });

  it('ends at the deadline under a deadline policy whose calls fail at once', () => {
    fc.assert(
      fc.property(deadlinePolicy, margin, fc.boolean(), (policy, deadline, knowsDuration) => {
        fc.pre(policy.maxAttempts > 1);
        const more = knowsDuration ? { tookMs: 0 } : {};
        const starts = livesOf(policy, deadline, (now) => ({ endMs: now, ...more }));
        const last = starts.at(-1) ?? 0;
        // Less than a floor's wait of room from the start leaves no second attempt.
        fc.pre(deadline - timeoutMs >= SECOND);
        expect(last).toBeLessThanOrEqual(deadline - timeoutMs);
        expect(last).toBeGreaterThanOrEqual(deadline - timeoutMs - LAST_CALL_MARGIN_MS - SECOND);
      }),
    );
  });

  it('has one last call, where the length of attempts is known, and nothing after it', () => {
    fc.assert(
      fc.property(anyPolicy, margin, steps, (policy, deadline, stream) => {
        const decisions: NextAttempt[] = [];
        livesOf(
          policy,
          deadline,
          (now) => {
            const step = stream.next().value;
            return { ...step, endMs: now + step.tookMs };
          },
          (decided) => decisions.push(decided),
        );
        expect(decisions.slice(0, -1).some((decided) => decided.lastCall)).toBe(false);
      }),
    );
  });
});

/** The starts of all attempts, in milliseconds from the first, when every one of them fails. */
function livesOf(
  policy: Policy,
  deadlineMs: number,
  fail: (nowMs: number) => Partial<RetryInput> & { endMs: number } = (nowMs) => ({ endMs: nowMs }),
  seen: (decided: NextAttempt) => void = () => {},
): number[] {
  const starts = [0];
  for (;;) {
    const { endMs, ...more } = fail(starts.at(-1) ?? 0);
    const decided = decideNext({
      policy,
      attempt: starts.length,
      marginMs: deadlineMs - endMs,
      ...common,
      ...more,
    });
    if ('giveUp' in decided) return starts;
    seen(decided);
    starts.push(endMs + decided.delayMs);
  }
}

function next(asked: RetryInput): NextAttempt {
  const decided = decideNext(asked);
  if ('giveUp' in decided) throw new Error(`gave up: ${decided.reason}`);
  return decided;
}

function giveUp(asked: RetryInput): string {
  const decided = decideNext(asked);
  return 'giveUp' in decided ? decided.giveUp : `attempt in ${decided.delayMs} ms`;
}
