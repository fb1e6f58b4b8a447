// Where the stack of this checkout lives: its folder, its name and the first port it tries.

import { createHash } from 'node:crypto';
import { realpathSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = realpathSync(fileURLToPath(new URL('../..', import.meta.url)));

/** A stack of its own beside the common one, for who must break its servers (npm run soak); empty: the common one. */
const part = process.env.STACK_PART ?? '';

export const local = join(root, '.local', part);
export const logs = join(local, 'log');

const digest = createHash('sha256')
  .update(root + part)
  .digest('hex')
  .slice(0, 8);

/** Unlike for every checkout, so that two of them never share a node, a project or a folder. */
export const stackName = `duepost-${digest}`;

/** Blocks of ten below the ephemeral range, away from the standard ports of anybody's servers. */
export const firstPort = 20000 + 10 * (Number.parseInt(digest, 16) % 1000);

/** Used instead of `local` by servers that run as somebody else and cannot enter the checkout. */
export const elsewhere = join('/var/tmp', stackName);

/** Whether every folder above the checkout lets other users pass. */
export function othersCanEnter() {
  for (let folder = root; ; folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o001) === 0) return false;
    if (folder === dirname(folder)) return true;
  }
}
