import { isMembers, type Members } from './json.ts';
import { pointerPart, refuseField } from './refusal.ts';

interface CommonPolicy {
  /** The attempts of one cycle, the first included. */
  readonly maxAttempts: number;
  /** 0 to 0.5: the share of a wait that chance may add to it. */
  readonly jitter: number;
  /** Statuses that end the delivery, whatever the table of classification says. */
  readonly terminalStatuses: readonly number[];
  /** Statuses that are tried again, whatever the table of classification says. */
  readonly retryableStatuses: readonly number[];
}

/** Waits from a list. */
export interface SchedulePolicy extends CommonPolicy {
  readonly kind: 'schedule';
  /** Seconds to wait before attempt 1, 2, …; the last value repeats. */
  readonly retrySchedule: readonly number[];
}

/** Waits that follow what is left until the deadline. */
export interface DeadlinePolicy extends CommonPolicy {
  readonly kind: 'deadline';
  readonly baseSeconds: number;
  /** A wait is at most the margin divided by this. */
  readonly divisor: number;
  /** The last attempts, which are spread over the whole margin instead of following `baseSeconds`. */
  readonly reserveAttempts: number;
}

export type Policy = SchedulePolicy | DeadlinePolicy;

/** What an event follows where its endpoint says nothing: eight attempts over about 21 hours. */
export const DEFAULT_SCHEDULE_POLICY: SchedulePolicy = {
  kind: 'schedule',
  retrySchedule: [0, 30, 120, 600, 1800, 7200, 21600, 43200],
  maxAttempts: 8,
  jitter: 0,
  terminalStatuses: [],
  retryableStatuses: [],
};

/** What a reminder follows where its endpoint says nothing. */
export const DEFAULT_DEADLINE_POLICY: DeadlinePolicy = {
  kind: 'deadline',
  baseSeconds: 300,
  divisor: 4,
  maxAttempts: 12,
  reserveAttempts: 4,
  jitter: 0,
  terminalStatuses: [],
  retryableStatuses: [],
};

const COMMON_MEMBERS = ['kind', 'max_attempts', 'jitter', 'terminal_statuses', 'retryable_statuses'];
const MEMBERS = {
  schedule: [...COMMON_MEMBERS, 'retry_schedule'],
  deadline: [...COMMON_MEMBERS, 'base_seconds', 'divisor', 'reserve_attempts'],
};
export const MAX_ATTEMPTS = 100;
export const MAX_WAIT_SECONDS = 30 * 86_400;

/**
 * Reads a policy as a caller wrote it. Only `kind` is required. A schedule without `max_attempts` has as many
 * attempts as its list is long. Throws a Refusal that names the member and the remedy.
 *
 * @param path  JSON pointer (RFC 6901) of the policy within the request
 */
export function parsePolicy(json: unknown, path = '/policy'): Policy {
  if (!isMembers(json)) throw refuseField(path, 'policy must be an object, e.g. {"kind":"schedule"}');
  const kind = json['kind'];
  if (kind !== 'schedule' && kind !== 'deadline') {
    throw refuseField(`${path}/kind`, 'kind must be "schedule" or "deadline"');
  }
  for (const name of Object.keys(json)) {
    if (MEMBERS[kind].includes(name)) continue;
    throw refuseField(
      `${path}/${pointerPart(name)}`,
      `a ${kind} policy has no such member; remove it or use one of ${MEMBERS[kind].join(', ')}`,
    );
  }
  return kind === 'schedule' ? parseSchedule(json, path) : parseDeadline(json, path);
}

/** The policy with the names it has in the API, every member included. */
export function policyToJson(policy: Policy): Record<string, unknown> {
  const timing =
    policy.kind === 'schedule'
      ? { retry_schedule: policy.retrySchedule }
      : {
          base_seconds: policy.baseSeconds,
          divisor: policy.divisor,
          reserve_attempts: policy.reserveAttempts,
        };
  return {
    kind: policy.kind,
    ...timing,
    max_attempts: policy.maxAttempts,
    jitter: policy.jitter,
    terminal_statuses: policy.terminalStatuses,
    retryable_statuses: policy.retryableStatuses,
  };
}

/**
 * The policy that decides about a delivery: the endpoint's own, else the default of what is sent. A deadline policy
 * without a deadline waits by the default schedule; what it says about jitter and statuses still holds.
 *
 * @param policy  the endpoint's; undefined when it has none
 */
export function policyInUse(
  policy: Policy | undefined,
  subject: { kind: 'reminder' | 'event'; hasDeadline: boolean },
): Policy {
  const chosen = policy ?? (subject.kind === 'reminder' ? DEFAULT_DEADLINE_POLICY : DEFAULT_SCHEDULE_POLICY);
  if (chosen.kind === 'schedule' || subject.hasDeadline) return chosen;
  const { jitter, terminalStatuses, retryableStatuses } = chosen;
  return { ...DEFAULT_SCHEDULE_POLICY, jitter, terminalStatuses, retryableStatuses };
}

function parseSchedule(json: Members, path: string): SchedulePolicy {
  const standard = DEFAULT_SCHEDULE_POLICY;
  const retrySchedule = readList(json, 'retry_schedule', path) ?? standard.retrySchedule;
  const seconds = { min: 0, max: MAX_WAIT_SECONDS, unit: ' seconds' };
  if (retrySchedule.length === 0) {
    throw refuseField(
      `${path}/retry_schedule`,
      'retry_schedule must name at least one wait, e.g. [0,30,120]',
    );
  }
  return {
    kind: 'schedule',
    retrySchedule: retrySchedule.map((value, index) =>
      checkNumber(value, `${path}/retry_schedule/${index}`, { name: 'a wait', ...seconds }),
    ),
    ...parseCommon(json, path, retrySchedule.length),
  };
}

function parseDeadline(json: Members, path: string): DeadlinePolicy {
  const standard = DEFAULT_DEADLINE_POLICY;
  const common = parseCommon(json, path, standard.maxAttempts);
  const read = (name: string, fallback: number, bounds: Bounds) =>
    checkNumber(json[name] ?? fallback, `${path}/${name}`, { name, ...bounds });
  return {
    kind: 'deadline',
    baseSeconds: read('base_seconds', standard.baseSeconds, {
      min: 1,
      max: MAX_WAIT_SECONDS,
      unit: ' seconds',
    }),
    divisor: read('divisor', standard.divisor, { min: 1, max: 1000 }),
    reserveAttempts: read('reserve_attempts', Math.min(standard.reserveAttempts, common.maxAttempts), {
      min: 0,
      max: common.maxAttempts,
      whole: true,
    }),
    ...common,
  };
}

function parseCommon(json: Members, path: string, attempts: number): CommonPolicy {
  const terminalStatuses = parseStatuses(json, 'terminal_statuses', path);
  const retryableStatuses = parseStatuses(json, 'retryable_statuses', path);
  const both = terminalStatuses.find((status) => retryableStatuses.includes(status));
  if (both !== undefined) {
    throw refuseField(
      `${path}/terminal_statuses`,
      `${both} is also in retryable_statuses; keep it in one of them`,
    );
  }
  const count = { name: 'max_attempts', min: 1, max: MAX_ATTEMPTS, whole: true };
  return {
    maxAttempts: checkNumber(json['max_attempts'] ?? attempts, `${path}/max_attempts`, count),
    jitter: checkNumber(json['jitter'] ?? 0, `${path}/jitter`, { name: 'jitter', min: 0, max: 0.5 }),
    terminalStatuses,
    retryableStatuses,
  };
}

function parseStatuses(json: Members, name: string, path: string): number[] {
  return (readList(json, name, path) ?? []).map((value, index) => {
    const at = `${path}/${name}/${index}`;
    // A 2xx is the receiver's word that it has the message, and 410 its word that it is gone: no policy changes either.
    if (value === 410) throw refuseField(at, '410 always disables the endpoint; remove it');
    return checkNumber(value, at, { name: 'a status', min: 300, max: 599, whole: true });
  });
}

function readList(json: Members, name: string, path: string): readonly unknown[] | undefined {
  const value = json[name];
  if (value === undefined) return undefined;
  if (Array.isArray(value) && value.length <= MAX_ATTEMPTS) return value;
  throw refuseField(`${path}/${name}`, `${name} must be a list of at most ${MAX_ATTEMPTS} numbers`);
}

interface Bounds {
  readonly min: number;
  readonly max: number;
  readonly whole?: boolean;
  readonly unit?: string;
}

function checkNumber(value: unknown, path: string, rule: Bounds & { readonly name: string }): number {
  const { name, min, max, whole = false, unit = '' } = rule;
  if (typeof value === 'number' && value >= min && value <= max && (!whole || Number.isInteger(value))) {
    return value;
  }
  throw refuseField(
    path,
    `${name} must be a ${whole ? 'whole number' : 'number'} from ${min} to ${max}${unit}`,
  );
}
