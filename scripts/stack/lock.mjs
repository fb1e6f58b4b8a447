// Who may change the stack (one at a time), and who is using it.

import { mkdirSync, readdirSync, readFileSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { local } from './place.mjs';
import { describeProcess, isAlive, signalProcess } from './process.mjs';
import { Interrupted, say } from './report.mjs';

const lock = join(local, 'lock');
const holders = join(local, 'holders');

function readMarks(folder) {
  let names;
  try {
    names = readdirSync(folder);
  } catch {
    return [];
  }
  return names.flatMap((name) => {
    const file = join(folder, name);
    try {
      return [{ file, ...JSON.parse(readFileSync(file, 'utf8')) }];
    } catch {
      return [];
    }
  });
}

function writeMark(folder, name, child) {
  mkdirSync(folder, { recursive: true });
  const mark = { ...describeProcess(process.pid), name, child };
  writeFileSync(join(folder, String(process.pid)), JSON.stringify(mark));
}

function removeMark(file) {
  rmSync(file, { force: true });
}

/**
 * Tries to take the lock. A folder that holds the owner's mark is moved into place: that works only where there is no
 * lock or an empty one, so a lock is never without an owner, and clearing a dead owner's mark cannot hit a new one.
 */
function tryLock(ownerName) {
  const offer = `${lock}.${process.pid}`;
  writeMark(offer, ownerName);
  try {
    renameSync(offer, lock);
    return true;
  } catch (error) {
    if (!['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(error.code)) throw error;
    rmSync(offer, { recursive: true, force: true });
    for (const mark of readMarks(lock)) if (!isAlive(mark)) removeMark(mark.file);
    return false;
  }
}

/** Runs the body while nobody else changes the stack; a dead owner's lock is free. */
export async function withLock(name, signal, body) {
  for (let tries = 0; !tryLock(name); tries += 1) {
    if (signal?.aborted) throw new Interrupted();
    const [owner] = readMarks(lock);
    if (tries === 3 && owner !== undefined) say('stack', `waiting for ${owner.name} (pid ${owner.pid})`);
    await sleep(100);
  }
  try {
    return await body();
  } finally {
    removeMark(join(lock, String(process.pid)));
    try {
      rmdirSync(lock);
    } catch {
      // The next one has moved in already, or a reset took the whole folder.
    }
  }
}

/** Marks this process as a user of the stack; `child` is the process it runs in the foreground, if any. */
export function hold(name, child) {
  writeMark(holders, name, child);
}

export function letGo() {
  removeMark(join(holders, String(process.pid)));
}

/**
 * Everybody who is using the stack now. The marks of those who died are removed, and what they ran in the foreground
 * is ended: nobody can reach it with a Ctrl-C any more, and it holds its port.
 */
export function listHolders() {
  return readMarks(holders).filter((mark) => {
    if (isAlive(mark)) return true;
    if (isAlive(mark.child)) signalProcess(-mark.child.pid, 'SIGKILL');
    removeMark(mark.file);
    return false;
  });
}
