// Ports: which are free, and whether somebody listens.

import { connect, createServer } from 'node:net';
import { firstPort } from './place.mjs';
import { Failure } from './report.mjs';

const host = '127.0.0.1';

function isFree(port) {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resolve(true)));
  });
}

/** The first block of ten in which all these offsets are free. */
export async function findFreePorts(offsets) {
  for (let step = 0; step < 1000; step += 1) {
    const base = 20000 + ((firstPort - 20000 + 10 * step) % 10000);
    const ports = offsets.map((offset) => base + offset);
    const free = await Promise.all(ports.map(isFree));
    if (free.every(Boolean)) return ports;
  }
  throw new Failure('no free ports between 20000 and 29999');
}

/** Whether something accepts connections there. */
export function accepts(port) {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const end = (answer) => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(2000, () => end(false));
    socket.once('connect', () => end(true)).once('error', () => end(false));
  });
}
