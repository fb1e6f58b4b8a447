// What runs, in .local/state.json: read and written only by the owner of the lock.

import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { local, logs } from './place.mjs';

const file = join(local, 'state.json');

/** `{ keep, postgres?, rabbitmq? }`; `keep` = leave them running when the last user has ended. */
export function readState() {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return { keep: false };
  }
}

/** Changes the file in one step, so that a killed script never leaves half of it. */
export function changeState(changes) {
  mkdirSync(logs, { recursive: true });
  const state = { ...readState(), ...changes };
  writeFileSync(`${file}.new`, `${JSON.stringify(state, undefined, 2)}\n`);
  renameSync(`${file}.new`, file);
  return state;
}
