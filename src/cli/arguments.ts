import { readFileSync } from 'node:fs';
import { InvalidArgumentError } from 'commander';
import { parseDay } from '../domain/calendar/dates.ts';
import { parseJson } from '../domain/json.ts';

/** JSON of an option; `@file` reads it from a file, `@-` from stdin. */
export function readJson(text: string): unknown {
  return parseText(readText(text));
}

/** As `readJson`, but numbers that a double does not give back stay as they were written. */
export function readPayload(text: string): unknown {
  const json = readText(text);
  parseText(json);
  return (parseText(`{"payload":${json}}`) as { payload: unknown }).payload;
}

function readText(text: string): string {
  if (!text.startsWith('@')) return text;
  try {
    return readFileSync(text === '@-' ? 0 : text.slice(1), 'utf8');
  } catch (error) {
    throw new InvalidArgumentError(`It cannot be read: ${(error as Error).message}.`);
  }
}

function parseText(json: string): unknown {
  try {
    return parseJson(json);
  } catch (error) {
    throw new InvalidArgumentError(`It must be JSON: ${(error as Error).message}.`);
  }
}

/** A whole number within bounds. */
export function readWhole(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  };
}

/** Words separated by commas; the option may also be given several times. */
export function readList(text: string, before: readonly string[] = []): string[] {
  const words = text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
  return [...before, ...words];
}

/** A date. */
export function readDate(text: string): string {
  if (parseDay(text) !== undefined) return text;
  throw new InvalidArgumentError('It must be a date such as 2027-03-31.');
}

/** An instant as RFC 3339 has it, or a date: its beginning in UTC. */
export function readTime(text: string): Date {
  const at = /^\d{4}-\d{2}-\d{2}([Tt ].+([Zz]|[+-]\d{2}:\d{2}))?$/.test(text) ? new Date(text) : undefined;
  if (at !== undefined && !Number.isNaN(at.getTime())) return at;
  throw new InvalidArgumentError('It must be a time such as 2027-03-31 or 2027-03-31T09:00:00Z.');
}
