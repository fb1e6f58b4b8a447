import { parseJson } from '../../domain/json.ts';
import { Refusal } from '../../domain/refusal.ts';
import type { Line } from './lines.ts';

/** One reminder of a file, or why it cannot be read. */
export interface Row {
  /** The line it begins on, from 1. */
  readonly line: number;
  /** Where it ends in the file, in bytes. */
  readonly endByte: number;
  readonly content: Record<string, unknown> | Refusal;
}

/** Lines of JSON, one object each; empty lines are passed over. */
export async function* readJsonRows(lines: AsyncIterable<Line>): AsyncGenerator<Row> {
  for await (const { number: line, endByte, text } of lines) {
    if (text?.trim() === '') continue;
    yield { line, endByte, content: text === undefined ? unreadable() : readObject(text) };
  }
}

function readObject(text: string): Record<string, unknown> | Refusal {
  try {
    const value = parseJson(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
    return new Refusal('invalid_request', 'the line must be a JSON object');
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}

/** The refusal of a line that is no text. */
export function unreadable(): Refusal {
  return new Refusal('invalid_request', 'the line is not UTF-8, or too long');
}
