import { Ajv, type ErrorObject } from 'ajv';
import addFormats from 'ajv-formats';
import type { TSchema } from 'typebox';
import { type Fault, Refusal } from '../refusal.ts';

const ajv = new Ajv({ allErrors: true, strict: false, coerceTypes: false });
addFormats.default(ajv);

/** Checks a value against a schema: every fault with its JSON pointer and what to do. */
export type Validator = (value: unknown) => readonly Fault[];

const validators = new WeakMap<object, Validator>();

/** The validator of a schema, compiled once. */
export function validatorOf(schema: TSchema): Validator {
  const known = validators.get(schema);
  if (known !== undefined) return known;
  const check = ajv.compile(schema);
  const validator: Validator = (value) => (check(value) ? [] : (check.errors ?? []).map(toFault));
  validators.set(schema, validator);
  return validator;
}

/**
 * Throws a Refusal that names each member that is wrong.
 *
 * @param path  JSON pointer of the value within the request
 */
export function requireValid(schema: TSchema, value: unknown, path = ''): void {
  const faults = validatorOf(schema)(value);
  if (faults.length === 0) return;
  throw refusalOf(faults, path);
}

/** One Refusal of several faults. */
export function refusalOf(faults: readonly Fault[], path = ''): Refusal {
  const placed = faults.slice(0, 20).map((f) => ({ path: path + f.path, message: f.message }));
  return new Refusal('invalid_request', placed.map((f) => f.message).join('; '), placed);
}

function toFault({ instancePath, keyword, params, message }: ErrorObject): Fault {
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
        message: `${printable(member)} is not known here`,
      };
    }
    case 'pattern':
      return { path: instancePath, message: `${subject} must match ${String(params['pattern'])}` };
    case 'enum':
      return {
        path: instancePath,
        message: `${subject} must be one of ${(params['allowedValues'] as unknown[]).join(', ')}`,
      };
    case 'format':
      return {
        path: instancePath,
        message: `${subject} must be a ${String(params['format'])}, as RFC 3339 has it`,
      };
    default:
      return { path: instancePath, message: `${subject} ${message ?? 'is wrong'}` };
  }
}

function pointer(member: string): string {
  return printable(member).replaceAll('~', '~0').replaceAll('/', '~1');
}

function printable(text: string): string {
  return JSON.stringify(text).slice(1, -1).slice(0, 100);
}
