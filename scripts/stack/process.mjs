// Processes: starting servers that outlive a Ctrl-C, and telling a process from another one with its pid.

import { execFileSync, spawn } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Failure, Interrupted } from './report.mjs';

function readLinuxStat(pid) {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const name = text.slice(text.indexOf('(') + 1, text.lastIndexOf(')'));
  return { name, state: fields[0], group: Number(fields[2]), startedAt: fields[19] };
}

function readBootId() {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}

function ps(pid, column) {
  return execFileSync('ps', ['-o', `${column}=`, '-p', String(pid)], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();
}

/** What tells this process from a later one with the same pid; undefined when it is gone or a zombie. */
export function identify(pid) {
  try {
    if (process.platform === 'linux') {
      const { state, startedAt } = readLinuxStat(pid);
      return state === 'Z' || state === 'X' ? undefined : `${readBootId()} ${startedAt}`;
    }
    return ps(pid, 'stat').startsWith('Z') ? undefined : ps(pid, 'lstart');
  } catch {
    return undefined;
  }
}

/** Whether a recorded `{ pid, identity }` is still that very process. */
export function isAlive(recorded) {
  return recorded?.identity !== undefined && identify(recorded.pid) === recorded.identity;
}

export function describeProcess(pid) {
  return { pid, identity: identify(pid) };
}

export function commandLine(pid) {
  try {
    if (process.platform === 'linux')
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    return ps(pid, 'command');
  } catch {
    return '';
  }
}

/** The member of a process group with this name, where the system shows it (Linux). */
export function findInGroup(group, name) {
  if (process.platform !== 'linux') return undefined;
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const stat = readLinuxStat(Number(entry));
      if (stat.group === group && stat.name === name) return describeProcess(Number(entry));
    } catch {
      // It ended while we looked.
    }
  }
  return undefined;
}

/**
 * Starts a server in a process group of its own, so that Ctrl-C reaches only this script.
 * `server.exit` is undefined until it ended, then says how.
 */
export async function spawnServer(file, args, { log, ...options }) {
  const output = openSync(log, 'w');
  const child = spawn(file, args, { ...options, detached: true, stdio: ['ignore', output, output] });
  closeSync(output);
  const server = { pid: child.pid, identity: undefined, exit: undefined };
  await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
  child.once('exit', (code, signal) => {
    server.exit = signal === null ? `exit code ${code}` : signal;
  });
  child.unref();
  server.identity = identify(child.pid);
  return server;
}

/** Runs a command to its end; its output goes to the log file, and a failure points there. */
export async function run(file, args, { what, log, input, ...options }) {
  const output = openSync(log, 'w');
  const child = spawn(file, args, {
    ...options,
    stdio: [input === undefined ? 'ignore' : 'pipe', output, output],
  });
  closeSync(output);
  child.stdin?.on('error', () => {});
  child.stdin?.end(input);
  const exit = await new Promise((resolve, reject) => {
    child.once('error', reject).once('exit', (code, signal) => resolve(signal ?? code));
  }).catch((error) => (options.signal?.aborted ? 'interrupted' : error.message));
  if (options.signal?.aborted) throw new Interrupted();
  if (exit !== 0) throw new Failure(`${what} failed (${exit})`, { log });
}

/** Whether a command ends with 0 within five seconds; says nothing. */
export function succeeds(file, args) {
  return new Promise((resolve) => {
    const child = spawn(file, args, { stdio: 'ignore', timeout: 5000, killSignal: 'SIGKILL' });
    child.once('error', () => resolve(false)).once('exit', (code) => resolve(code === 0));
  });
}

/** Waits for a condition; false when the time is over. */
export async function waitUntil(condition, { withinMs, everyMs = 25, signal }) {
  const endsAt = Date.now() + withinMs;
  while (!(await condition())) {
    if (signal?.aborted) throw new Interrupted();
    if (Date.now() >= endsAt) return false;
    await sleep(everyMs);
  }
  return true;
}

export function signalProcess(pid, name) {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}
