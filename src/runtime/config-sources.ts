import { readFileSync } from 'node:fs';
import {
  ENVIRONMENT_VARIABLE,
  FOREIGN_VARIABLES,
  hasFileVariable,
  SETTINGS,
  type Setting,
} from './config-settings.ts';
import { readJsonFile } from './json-file.ts';

// A Service of this name in Kubernetes puts such variables into every pod of its namespace.
const SERVICE_LINK = /_(SERVICE_HOST|SERVICE_PORT\w*|PORT|PORT_\d+_(TCP|UDP|SCTP)\w*)$/;

/** How what is wrong is gathered. */
export interface Complaints {
  readonly problems: string[];
  /** The name that was probably meant, if one comes near. */
  readonly findNearest: (name: string, names: Iterable<string>) => string | undefined;
}

/**
 * The values that variables give, by variable, each cleaned once and for all.
 *
 * Adds to `problems`: unknown variables, files that cannot be read, hidden characters.
 */
export function readVariables(env: NodeJS.ProcessEnv, complaints: Complaints): Record<string, string> {
  const { problems } = complaints;
  const values: Record<string, string> = {};
  const known = new Set<string>([ENVIRONMENT_VARIABLE, ...FOREIGN_VARIABLES]);
  for (const setting of Object.values(SETTINGS)) {
    known.add(setting.env);
    if (hasFileVariable(setting)) known.add(`${setting.env}_FILE`);
    const value = readVariable(env, setting, problems);
    if (value !== undefined) values[setting.env] = value;
  }
  for (const name of Object.keys(env)) {
    if (!name.startsWith('DUEPOST_') || known.has(name) || isServiceLink(name, env[name] ?? '')) continue;
    problems.push(`${printable(name)} is not a variable of duepost${didYouMean(name, known, complaints)}`);
  }
  return values;
}

function readVariable(env: NodeJS.ProcessEnv, setting: Setting, problems: string[]): string | undefined {
  const given = unlessEmpty(env[setting.env], setting);
  const path = hasFileVariable(setting) ? clean(env[`${setting.env}_FILE`] ?? '') : '';
  if (path === '')
    return given === undefined ? undefined : cleanValue(given, setting.env, { setting, problems });
  const name = `${setting.env}_FILE`;
  if (given !== undefined) {
    problems.push(`${setting.env} and ${name} are both set: use one of them`);
    return undefined;
  }
  try {
    return cleanValue(readFileSync(path, 'utf8'), name, { setting, problems });
  } catch (error) {
    // Not the path: people put the secret itself there.
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown error';
    problems.push(`${name} names a file that cannot be read (${code})`);
    return undefined;
  }
}

/** An empty variable is an unset one, except where empty means "none". */
function unlessEmpty(text: string | undefined, setting: Setting): string | undefined {
  return text !== undefined && clean(text) === '' && setting.format !== 'cidr-list' ? undefined : text;
}

function cleanValue(
  text: string,
  name: string,
  { setting, problems }: { setting: Setting; problems: string[] },
): string | undefined {
  const value = clean(text);
  // An env file cannot hold line breaks, so a PEM comes with "\n" for them.
  if (setting.format === 'signing-key') return value.replaceAll('\\n', '\n').replaceAll('\r', '').trim();
  if (!hasControlCharacter(value)) return value;
  problems.push(`${name} has a line break or another control character in it`);
  return undefined;
}

/** Without the white space, line end and pair of quotes that env files and editors leave around a value. */
function clean(text: string): string {
  const value = text.trim();
  const quote = value[0];
  const isQuoted = value.length > 1 && (quote === '"' || quote === "'") && value.at(-1) === quote;
  return isQuoted ? value.slice(1, -1).trim() : value;
}

/**
 * The values of a configuration file as nested objects, ready for convict.
 *
 * Adds to `problems`: an unreadable file, unknown keys, secrets in the file, objects in place of values.
 */
export function readConfigFile(path: string, label: string, complaints: Complaints): Record<string, unknown> {
  const { problems } = complaints;
  const file = readJsonFile(path);
  if (file.problem !== undefined) {
    problems.push(`${label} ${file.problem}`);
    return {};
  }
  if (!isObject(file.value)) {
    problems.push(`${label} must hold one JSON object`);
    return {};
  }
  return keepKnown(file.value, '', { label, ...complaints });
}

function keepKnown(
  from: Record<string, unknown>,
  path: string,
  context: Complaints & { readonly label: string },
): Record<string, unknown> {
  const { label, problems } = context;
  const kept: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(from)) {
    const name = `${path}${key}`;
    const setting = Object.hasOwn(SETTINGS, name) ? SETTINGS[name] : undefined;
    if (setting?.secret === true) {
      problems.push(`${label}: ${name} is a secret: set ${setting.env} or ${setting.env}_FILE instead`);
    } else if (setting !== undefined) {
      const trimmed = typeof value === 'string' ? clean(value) : value;
      if (isObject(value)) problems.push(`${label}: ${name} must be a value, not an object`);
      else if (typeof trimmed === 'string' && hasControlCharacter(trimmed)) {
        problems.push(`${label}: ${name} has a line break or another control character in it`);
      } else kept[key] = trimmed;
    } else if (isObject(value) && isSection(name)) {
      kept[key] = keepKnown(value, `${name}.`, context);
    } else if (isObject(value) && Object.keys(value).length > 0) {
      keepKnown(value, `${name}.`, context);
    } else {
      problems.push(
        `${label}: ${printable(name)} is not a setting${didYouMean(name, Object.keys(SETTINGS), context)}`,
      );
    }
  }
  return kept;
}

function isSection(name: string): boolean {
  return Object.keys(SETTINGS).some((key) => key.startsWith(`${name}.`));
}

function isServiceLink(name: string, value: string): boolean {
  return SERVICE_LINK.test(name) && (/^(tcp|udp|sctp):\/\//.test(value) || /_(SERVICE|PORT_\d)/.test(name));
}

/** `; did you mean x?`, or nothing. */
export function didYouMean(name: string, names: Iterable<string>, { findNearest }: Complaints): string {
  const candidate = findNearest(name, names);
  return candidate === undefined ? '' : `; did you mean ${candidate}?`;
}

function printable(name: string): string {
  return JSON.stringify(name).slice(1, -1).slice(0, 100);
}

function hasControlCharacter(text: string): boolean {
  return /[\p{Cc}\u2028\u2029]/u.test(text);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
