// Processor time of processes, from /proc; undefined where there is none.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** USER_HZ: 100 on every Linux in use. */
const TICK_MS = 10;

function readStat(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    return {
      parent: fields[1],
      ownMs: (fields[11] + fields[12]) * TICK_MS,
      reapedMs: (fields[13] + fields[14]) * TICK_MS,
    };
  } catch {
    return undefined;
  }
}

function listPids() {
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number);
  } catch {
    return [];
  }
}

/** Milliseconds that a process has used, with its children and those that have ended; undefined: not to be had. */
export function processorMs(pid) {
  if (pid === undefined) return undefined;
  const root = readStat(pid);
  if (root === undefined) return undefined;
  let sum = root.ownMs + root.reapedMs;
  for (const other of listPids()) {
    const stat = readStat(other);
    if (stat?.parent === pid) sum += stat.ownMs + stat.reapedMs;
  }
  return sum;
}

/** Resident bytes of one process. */
export function residentBytes(pid) {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;
  } catch {
    return undefined;
  }
}

/** The process that listens on a port of this machine; undefined where that is not to be learned. */
export function findListener(port) {
  try {
    const wanted = port.toString(16).toUpperCase().padStart(4, '0');
    const inodes = new Set();
    for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
      for (const line of readFileSync(table, 'utf8').split('\n')) {
        const fields = line.trim().split(/\s+/);
        if (fields[3] === '0A' && fields[1]?.endsWith(`:${wanted}`)) inodes.add(`socket:[${fields[9]}]`);
      }
    }
    const holders = listPids().filter((pid) => holdsAny(pid, inodes));
    // PostgreSQL's children inherit the socket: the one whose parent does not hold it is the server.
    return holders.find((pid) => !holders.includes(readStat(pid)?.parent));
  } catch {
    return undefined;
  }
}

function holdsAny(pid, inodes) {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => {
      try {
        return inodes.has(readlinkSync(`/proc/${pid}/fd/${fd}`));
      } catch {
        return false;
      }
    });
  } catch {
    return false;
  }
}
