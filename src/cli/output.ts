import { complain } from './complain.ts';

/** EX_IOERR of sysexits.h: what was to be written found no place. */
export const NOT_WRITTEN = 74;

const NO_PLACE = new Set(['ENOSPC', 'EDQUOT', 'EFBIG', 'EIO']);

/** Whether an error says that a file or a disk takes no more. */
export function isOutOfPlace(error: unknown): boolean {
  return NO_PLACE.has(String((error as { code?: unknown } | undefined)?.code));
}

/**
 * Watches stdout and stderr from here on: whoever reads only the beginning (head, less) is no reason to fail; a disk that is
 * full is, and is told in one line.
 *
 * @returns the exit code of a command that would end with this one
 */
export function watchOutput(): (code: number) => number {
  let isLost = false;
  process.stderr.on('error', () => undefined);
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE' || isLost) return;
    isLost = true;
    complain(`the answer could not be written: ${error.message}`);
    // It may have been the last thing that the command did.
    process.exitCode = NOT_WRITTEN;
  });
  return (code) => (isLost ? NOT_WRITTEN : code);
}
