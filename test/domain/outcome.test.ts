import { describe, expect, it } from 'vitest';
import { classify } from '../../src/domain/outcome.ts';
import { DEFAULT_DEADLINE_POLICY, DEFAULT_SCHEDULE_POLICY } from '../../src/domain/policy.ts';

const reminder = DEFAULT_DEADLINE_POLICY;
const event = DEFAULT_SCHEDULE_POLICY;
const outcomes = (status: number) => [
  classify({ status }, reminder).outcome,
  classify({ status }, event).outcome,
];

describe('an answer', () => {
  it.each([200, 201, 202, 204, 299])('%i delivers reminders and events', (status) => {
    expect(outcomes(status)).toEqual(['delivered', 'delivered']);
  });

  it.each([408, 409, 425, 429, 500, 501, 502, 503, 504, 599])('%i is tried again for both', (status) => {
    expect(outcomes(status)).toEqual(['retryable', 'retryable']);
  });

  it.each([300, 301, 302, 304, 307, 400, 401, 403, 404, 405, 411, 422, 426, 451, 499])(
    '%i ends a reminder and is tried again for an event',
    (status) => {
      expect(outcomes(status)).toEqual(['terminal', 'retryable']);
    },
  );

  it.each([101, 600, 999])('%i, which no server should send, is tried again for both', (status) => {
    expect(outcomes(status)).toEqual(['retryable', 'retryable']);
  });

  it('410 says that the endpoint is gone, and nothing else does', () => {
    expect(classify({ status: 410 }, reminder)).toEqual({ outcome: 'terminal', gone: true });
    expect(classify({ status: 410 }, event)).toEqual({ outcome: 'terminal', gone: true });
    for (const status of [200, 400, 401, 404, 409, 411, 500]) {
      expect(classify({ status }, reminder).gone).toBe(false);
      expect(classify({ status }, event).gone).toBe(false);
    }
  });

  it.each(['timeout', 'ECONNREFUSED', 'dns', 'tls', 'address_not_allowed'])(
    'that never came (%s) is tried again for both',
    (error) => {
      expect(classify({ error }, reminder)).toEqual({ outcome: 'retryable', gone: false });
      expect(classify({ error }, event)).toEqual({ outcome: 'retryable', gone: false });
    },
  );

  it('2xx whose body broke off is delivered all the same', () => {
    expect(classify({ status: 200, error: 'body_aborted' }, reminder).outcome).toBe('delivered');
  });

  it('means what the lists of the policy say', () => {
    const lists = { terminalStatuses: [503, 400], retryableStatuses: [404, 302] };
    for (const policy of [
      { ...reminder, ...lists },
      { ...event, ...lists },
    ]) {
      expect(classify({ status: 503 }, policy).outcome).toBe('terminal');
      expect(classify({ status: 400 }, policy).outcome).toBe('terminal');
      expect(classify({ status: 404 }, policy).outcome).toBe('retryable');
      expect(classify({ status: 302 }, policy).outcome).toBe('retryable');
      expect(classify({ status: 500 }, policy).outcome).toBe('retryable');
    }
  });

  it('of 2xx or 410 means the same whatever the lists say', () => {
    const policy = { ...event, terminalStatuses: [200], retryableStatuses: [410] };
    expect(classify({ status: 200 }, policy).outcome).toBe('delivered');
    expect(classify({ status: 410 }, policy)).toEqual({ outcome: 'terminal', gone: true });
  });
});
