import { scrub } from '../runtime/log.ts';

/** One line for people, on stderr. */
export function complain(text: string): void {
  process.stderr.write(`duepost: ${scrub(text)}\n`);
}

/** What an error says, when it says it with its own message or with those of its parts. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // A connection that failed on every address has its reasons inside and an empty message.
  if (error instanceof AggregateError && error.message === '') return error.errors.map(reasonOf).join('; ');
  return error.message;
}
