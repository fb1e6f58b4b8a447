// What the stack says while it works, and when it cannot.

import { readFileSync } from 'node:fs';

const startedAt = Date.now();

/** One progress line on stderr; stdout belongs to the command that was asked for. */
export function say(part, text) {
  const seconds = ((Date.now() - startedAt) / 1000).toFixed(1).padStart(5);
  process.stderr.write(`${seconds}s  ${part.padEnd(10)}  ${text}\n`);
}

/** Something the person at the terminal has to know; `log` is the file whose end explains it. */
export class Failure extends Error {
  constructor(message, { advice = [], log } = {}) {
    super(message);
    this.advice = advice;
    this.log = log;
  }
}

export const resetAdvice = ['from scratch: npm run services -- reset'];

/** A signal ended the start. */
export class Interrupted extends Error {}

export function lastLines(file, count = 20) {
  try {
    return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-count);
  } catch {
    return [];
  }
}

/** The whole failure as one block, the end of the log last. */
export function printFailure(error) {
  const lines = ['', `error: ${error instanceof Failure ? error.message : (error.stack ?? error)}`];
  for (const line of error.advice ?? []) lines.push(`       ${line}`);
  if (error.log !== undefined) {
    lines.push('', `the end of ${error.log}:`);
    for (const line of lastLines(error.log)) lines.push(`  | ${line}`);
  }
  process.stderr.write(`${lines.join('\n')}\n`);
}
