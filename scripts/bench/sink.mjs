// The receiver of every measurement: a process of its own that understands just enough HTTP to answer a POST and to
// count, so that it is never what limits. Told what to do over IPC.
//
//   /ok       200          /fail/N  503 for attempts 1 … N, then 200          /hang  no answer

import { createServer } from 'node:net';

const OK = Buffer.from('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok');
const BUSY = Buffer.from('HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n');
const END = Buffer.from('\r\n\r\n');

let arrivals = new Map();
let calls = 0;
let keepTimes = false;
let firstAt;
let lastAt;
let goal;

/** Milliseconds of the system's monotonic clock, the same in every process of the machine. */
const now = () => Number(process.hrtime.bigint()) / 1e6;

function read(head, name) {
  const at = head.indexOf(`\r\n${name}: `);
  return at === -1 ? undefined : head.slice(at + name.length + 4, head.indexOf('\r\n', at + 2));
}

/** Header names differ in case between clients. */
function readAny(head, ...names) {
  for (const name of names) {
    const value = read(head, name);
    if (value !== undefined) return value;
  }
  return undefined;
}

/** @returns the answer's bytes, undefined for none */
function take(head) {
  const path = head.slice(5, head.indexOf(' ', 5));
  const key = readAny(head, 'Idempotency-Key', 'idempotency-key');
  const at = now();
  calls += 1;
  firstAt ??= at;
  if (calls === 1) process.send({ event: 'first' });
  if (path === '/hang') return undefined;
  if (path.startsWith('/fail/')) {
    const attempt = Number(readAny(head, 'X-Delivery-Attempt', 'x-delivery-attempt') ?? 1);
    if (attempt <= Number(path.slice(6))) return BUSY;
  }
  lastAt = at;
  if (!arrivals.has(key)) arrivals.set(key, keepTimes ? at : 0);
  if (goal !== undefined && arrivals.size >= goal) {
    goal = undefined;
    process.send({ event: 'reached' });
  }
  return OK;
}

const server = createServer((socket) => {
  let rest;
  socket.setNoDelay(true);
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    let buffer = rest === undefined ? chunk : Buffer.concat([rest, chunk]);
    rest = undefined;
    while (buffer.length > 0) {
      const end = buffer.indexOf(END);
      if (end === -1) break;
      const head = buffer.latin1Slice(0, end + 2);
      const size = end + 4 + Number(readAny(head, 'Content-Length', 'content-length') ?? 0);
      if (buffer.length < size) break;
      const answer = take(head);
      if (answer !== undefined) socket.write(answer);
      buffer = buffer.subarray(size);
    }
    if (buffer.length > 0) rest = buffer;
  });
});

const commands = {
  reset(options) {
    arrivals = new Map();
    calls = 0;
    firstAt = undefined;
    lastAt = undefined;
    keepTimes = options.keepTimes ?? false;
    goal = options.goal;
    return {};
  },
  report: () => ({ effects: arrivals.size, calls, firstAt, lastAt, rssBytes: process.memoryUsage.rss() }),
  times: () => ({ times: [...arrivals] }),
};

process.on('message', ({ id, command, options }) =>
  process.send({ id, ...commands[command](options ?? {}) }),
);
process.on('disconnect', () => process.exit());
server.listen(0, '127.0.0.1', () => process.send({ event: 'listening', port: server.address().port }));
