import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  DEFAULT_DEADLINE_POLICY,
  DEFAULT_SCHEDULE_POLICY,
  parsePolicy,
  policyInUse,
  policyToJson,
} from '../../src/domain/policy.ts';
import { Refusal } from '../../src/domain/refusal.ts';

describe('a policy', () => {
  it('is the default of its kind where it says only that', () => {
    expect(parsePolicy({ kind: 'schedule' })).toEqual(DEFAULT_SCHEDULE_POLICY);
    expect(parsePolicy({ kind: 'deadline' })).toEqual(DEFAULT_DEADLINE_POLICY);
  });

  it('has the defaults the contract names', () => {
    expect(policyToJson(DEFAULT_SCHEDULE_POLICY)).toMatchObject({
      kind: 'schedule',
      retry_schedule: [0, 30, 120, 600, 1800, 7200, 21600, 43200],
      max_attempts: 8,
      jitter: 0,
    });
    expect(policyToJson(DEFAULT_DEADLINE_POLICY)).toMatchObject({
      kind: 'deadline',
      base_seconds: 300,
      divisor: 4,
      max_attempts: 12,
      reserve_attempts: 4,
      jitter: 0,
    });
  });

  it('has as many attempts as its list is long, unless it says otherwise', () => {
    const list = { kind: 'schedule', retry_schedule: [0, 10, 60, 300] };
    expect(parsePolicy(list).maxAttempts).toBe(4);
    expect(parsePolicy({ ...list, max_attempts: 9 }).maxAttempts).toBe(9);
    expect(parsePolicy({ kind: 'schedule', max_attempts: 3 })).toMatchObject({
      retrySchedule: DEFAULT_SCHEDULE_POLICY.retrySchedule,
      maxAttempts: 3,
    });
  });

  it('keeps its default reserve within a small budget', () => {
    expect(parsePolicy({ kind: 'deadline', max_attempts: 2 })).toMatchObject({
      maxAttempts: 2,
      reserveAttempts: 2,
    });
  });

  it('comes back from its JSON as it was', () => {
    const statuses = fc.uniqueArray(
      fc.integer({ min: 300, max: 599 }).filter((status) => status !== 410),
      { maxLength: 6 },
    );
    const common = {
      max_attempts: fc.integer({ min: 1, max: 100 }),
      jitter: fc.double({ min: 0, max: 0.5, noNaN: true }).map(Math.abs),
    };
    const seconds = fc.integer({ min: 0, max: 86_400 });
    const policy = fc.oneof(
      fc.record({
        kind: fc.constant('schedule'),
        retry_schedule: fc.array(seconds, { minLength: 1, maxLength: 20 }),
        ...common,
      }),
      fc.record({
        kind: fc.constant('deadline'),
        base_seconds: seconds.map((s) => s + 1),
        divisor: fc.integer({ min: 1, max: 50 }),
        reserve_attempts: fc.constant(1),
        ...common,
      }),
    );
    fc.assert(
      fc.property(policy, statuses, fc.nat(6), (json, all, cut) => {
        const full = { ...json, terminal_statuses: all.slice(0, cut), retryable_statuses: all.slice(cut) };
        const stored: unknown = JSON.parse(JSON.stringify(policyToJson(parsePolicy(full))));
        expect(stored).toEqual(full);
        expect(parsePolicy(stored)).toEqual(parsePolicy(full));
      }),
    );
  });

  it.each<[string, unknown, string]>([
    ['is not an object', [], '/policy'],
    ['is null', null, '/policy'],
    ['is text', '{"kind":"schedule"}', '/policy'],
    ['has no kind', { retry_schedule: [0] }, '/policy/kind'],
    ['has a strange kind', { kind: 'exponential' }, '/policy/kind'],
    ['has a misspelt member', { kind: 'schedule', retry_shedule: [0] }, '/policy/retry_shedule'],
    ['has a member of the other kind', { kind: 'schedule', divisor: 4 }, '/policy/divisor'],
    ['smuggles a prototype', JSON.parse('{"kind":"schedule","__proto__":{}}'), '/policy/__proto__'],
    ['has a member with a slash', { kind: 'schedule', 'a/b~c': 1 }, '/policy/a~1b~0c'],
    ['waits for no list', { kind: 'schedule', retry_schedule: 30 }, '/policy/retry_schedule'],
    ['waits for an empty list', { kind: 'schedule', retry_schedule: [] }, '/policy/retry_schedule'],
    ['waits too often', { kind: 'schedule', retry_schedule: Array(101).fill(1) }, '/policy/retry_schedule'],
    ['waits backwards', { kind: 'schedule', retry_schedule: [0, -1] }, '/policy/retry_schedule/1'],
    ['waits for text', { kind: 'schedule', retry_schedule: ['30'] }, '/policy/retry_schedule/0'],
    ['waits forever', { kind: 'schedule', retry_schedule: [Infinity] }, '/policy/retry_schedule/0'],
    ['never tries', { kind: 'schedule', max_attempts: 0 }, '/policy/max_attempts'],
    ['tries half', { kind: 'schedule', max_attempts: 2.5 }, '/policy/max_attempts'],
    ['tries text', { kind: 'schedule', max_attempts: '4' }, '/policy/max_attempts'],
    ['tries too often', { kind: 'schedule', max_attempts: 101 }, '/policy/max_attempts'],
    ['has no base', { kind: 'deadline', base_seconds: 0 }, '/policy/base_seconds'],
    ['divides by nothing', { kind: 'deadline', divisor: 0 }, '/policy/divisor'],
    [
      'reserves more than it has',
      { kind: 'deadline', max_attempts: 3, reserve_attempts: 4 },
      '/policy/reserve_attempts',
    ],
    ['shakes too much', { kind: 'schedule', jitter: 0.6 }, '/policy/jitter'],
    ['shakes backwards', { kind: 'schedule', jitter: -0.1 }, '/policy/jitter'],
    ['ends on success', { kind: 'schedule', terminal_statuses: [200] }, '/policy/terminal_statuses/0'],
    [
      'retries what is gone',
      { kind: 'schedule', retryable_statuses: [404, 410] },
      '/policy/retryable_statuses/1',
    ],
    [
      'wants both',
      { kind: 'schedule', terminal_statuses: [404], retryable_statuses: [404] },
      '/policy/terminal_statuses',
    ],
  ])('that %s is refused by name', (_why, json, member) => {
    const refusal = refusalOf(() => parsePolicy(json));
    expect(refusal.code).toBe('invalid_request');
    expect(refusal.faults.map((fault) => fault.path)).toEqual([member]);
    expect(refusal.message).toMatch(/must|remove|keep/);
  });

  it('is refused by the path it stood at', () => {
    const refusal = refusalOf(() => parsePolicy({ kind: 'deadline', divisor: 'x' }, '/endpoints/3/policy'));
    expect(refusal.faults[0]?.path).toBe('/endpoints/3/policy/divisor');
  });
});

describe('the policy in use', () => {
  const reminder = { kind: 'reminder', hasDeadline: true } as const;
  const event = { kind: 'event', hasDeadline: false } as const;

  it('is the default of what is sent where the endpoint has none', () => {
    expect(policyInUse(undefined, reminder)).toBe(DEFAULT_DEADLINE_POLICY);
    expect(policyInUse(undefined, event)).toBe(DEFAULT_SCHEDULE_POLICY);
    expect(policyInUse(undefined, { kind: 'event', hasDeadline: true })).toBe(DEFAULT_SCHEDULE_POLICY);
  });

  it('is the one of the endpoint for everything it gets', () => {
    const schedule = parsePolicy({ kind: 'schedule', retry_schedule: [0, 5] });
    const deadline = parsePolicy({ kind: 'deadline', base_seconds: 60 });
    expect(policyInUse(schedule, reminder)).toBe(schedule);
    expect(policyInUse(schedule, event)).toBe(schedule);
    expect(policyInUse(deadline, reminder)).toBe(deadline);
    expect(policyInUse(deadline, { kind: 'event', hasDeadline: true })).toBe(deadline);
  });

  it('waits by the default schedule where a deadline policy has no deadline to follow', () => {
    const deadline = parsePolicy({ kind: 'deadline', jitter: 0.2, terminal_statuses: [401] });
    expect(policyInUse(deadline, event)).toEqual({
      ...DEFAULT_SCHEDULE_POLICY,
      jitter: 0.2,
      terminalStatuses: [401],
    });
  });
});

function refusalOf(act: () => unknown): Refusal {
  try {
    act();
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}
