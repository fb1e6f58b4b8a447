import { Ajv, type ErrorObject } from 'ajv';
import addFormats from 'ajv-formats';
import type { TSchema } from 'typebox';
import { PERIOD_PATTERN, parsePeriod } from '../calendar/notice.ts';
import { isMembers } from '../json.ts';
import { findNearest } from '../nearest.ts';
import { type Fault, pointerPart, Refusal } from '../refusal.ts';
import { DeadlinePolicyRequest, SchedulePolicyRequest } from './policy.ts';

// With `verbose`, a fault knows its value and its schema.
const ajv = new Ajv({
  allErrors: true,
  strict: false,
  coerceTypes: false,
  discriminator: true,
  verbose: true,
});
addFormats.default(ajv);
ajv.addSchema([SchedulePolicyRequest, DeadlinePolicyRequest]);

const MAX_FAULTS = 20;
/** Characters of what was sent that an answer repeats. */
const MAX_SHOWN = 100;

/** Checks a value against a schema: every fault with its JSON pointer and what to do. */
export type Validator = (value: unknown) => readonly Fault[];

const validators = new WeakMap<object, Validator>();

/** The validator of a schema, compiled once. */
export function validatorOf(schema: TSchema): Validator {
  const known = validators.get(schema);
  if (known !== undefined) return known;
  const check = ajv.compile(schema);
  const validator: Validator = (value) => (check(value) ? [] : tell(check.errors ?? []));
  validators.set(schema, validator);
  return validator;
}

/** What a schema cannot say of a body; its members may be of any type. Throws a Refusal. */
export type Check = (members: Readonly<Record<string, unknown>>) => void;

/** Throws one Refusal that names each member that is wrong, by the schema or by one of the checks. */
export function requireValid(schema: TSchema, value: unknown, checks: readonly Check[] = []): void {
  const faults = validatorOf(schema)(value);
  const refusals = isMembers(value) ? checks.flatMap((check) => refusalBy(() => check(value)) ?? []) : [];
  const more = refusals.filter((refusal) =>
    refusal.faults.every(({ path }) => faults.every((fault) => fault.path !== path)),
  );
  const [first, ...others] = more;
  if (first !== undefined && others.length === 0 && faults.length === 0) throw first;
  if (faults.length + more.length > 0) throw refusalOf([...faults, ...more.flatMap((r) => r.faults)]);
}

/** What a check refuses, if it does. */
function refusalBy(check: () => void): Refusal | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}

/** One Refusal of several faults. */
export function refusalOf(faults: readonly Fault[]): Refusal {
  const told = faults.slice(0, MAX_FAULTS);
  return new Refusal('invalid_request', told.map((f) => f.message).join('; '), told);
}

/** Of a choice that nothing fits: whoever reads it wants to know what is wrong, not how it was looked for. */
const LOOKING = ['anyOf', 'oneOf', 'discriminator'];

/** The faults of a value; that it is not null either, where it may be, helps nobody. */
function tell(errors: readonly ErrorObject[]): Fault[] {
  const telling = errors.filter(
    ({ keyword, params }) => !LOOKING.includes(keyword) && !(keyword === 'type' && params['type'] === 'null'),
  );
  return (telling.length === 0 ? errors : telling).map(toFault);
}

function toFault({ instancePath, keyword, params, message, data, parentSchema }: ErrorObject): Fault {
  const name = instancePath.split('/').at(-1);
  const subject = name === undefined || name === '' ? 'the body' : name;
  switch (keyword) {
    case 'required': {
      const member = String(params['missingProperty']);
      return { path: `${instancePath}/${member}`, message: `${member} is missing` };
    }
    case 'additionalProperties': {
      const member = String(params['additionalProperty']);
      return {
        path: `${instancePath}/${pointer(member)}`,
        message: `${printable(member)} is not known here${meant(member, parentSchema)}`,
      };
    }
    case 'pattern':
      return { path: instancePath, message: `${subject} ${tellPattern(String(params['pattern']), data)}` };
    case 'enum':
      return {
        path: instancePath,
        message: `${subject} must be one of ${(params['allowedValues'] as unknown[]).join(', ')}`,
      };
    case 'format':
      return {
        path: instancePath,
        message: `${subject} must be ${params['format'] === 'date' ? 'a date that exists, as YYYY-MM-DD' : `a ${String(params['format'])}, as RFC 3339 has it`}`,
      };
    default:
      return { path: instancePath, message: `${subject} ${message ?? 'is wrong'}` };
  }
}

function tellPattern(pattern: string, value: unknown): string {
  if (pattern !== PERIOD_PATTERN) return `must match ${pattern}`;
  const text = String(value);
  const wrong = parsePeriod(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text);
  return typeof wrong === 'string' ? wrong : `must match ${pattern}`;
}

/** ` (did you mean "x"?)`, or nothing. */
function meant(member: string, schema: ErrorObject['parentSchema']): string {
  const close = findNearest(member, Object.keys((schema?.['properties'] ?? {}) as object));
  return close === undefined ? '' : ` (did you mean "${close}"?)`;
}

function pointer(member: string): string {
  return pointerPart(printable(member));
}

function printable(text: string): string {
  return JSON.stringify(text).slice(1, -1).slice(0, MAX_SHOWN);
}
