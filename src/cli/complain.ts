import { scrub } from '../runtime/log.ts';

/** One line for people, on stderr. */
export function complain(text: string): void {
  process.stderr.write(`duepost: ${scrub(text)}\n`);
}
