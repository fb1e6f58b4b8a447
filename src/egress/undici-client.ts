import { Client as UndiciClient } from 'undici';
import type { Line, OpenLine } from './connect.ts';
import { MAX_HEADER_BYTES, type RawHeaders } from './evidence.ts';
import { type Client, type Exchange, IDLE_MS, type Request } from './exchange.ts';
import { tolerateContinue } from './interim.ts';

/** One undici client is one connection; it opens another when the server closed the first. */
interface Slot {
  readonly origin: Origin;
  readonly client: UndiciClient;
  exchange: Exchange | undefined;
  line: Line | undefined;
  expectHead: () => void;
}

interface Origin {
  readonly key: string;
  /** Used as a stack: under little load few connections are kept in use and the others go. */
  readonly idle: Slot[];
  readonly waiting: Exchange[];
  open: number;
}

/**
 * The fast lane. Connections are kept here rather than in undici's own pool, so that each call is known to its
 * connection: that is where the evidence comes from, and how a connection that was dead before its use is told.
 */
export function createUndiciClient(openLine: OpenLine, maxSockets: number): Client {
  const origins = new Map<string, Origin>();
  const slots = new Set<Slot>();

  function begin(exchange: Exchange): void {
    const origin = originOf(exchange.request);
    const slot = exchange.request.again ? undefined : origin.idle.pop();
    if (slot !== undefined) run(slot, exchange);
    else if (exchange.request.again || origin.open < maxSockets)
      run(openSlot(origin, exchange.request), exchange);
    else queue(origin, exchange);
  }

  function originOf({ target, call }: Request): Origin {
    const key = call.tls === undefined ? target.origin : `${target.origin} ${JSON.stringify(call.tls)}`;
    const known = origins.get(key);
    if (known !== undefined) return known;
    const origin: Origin = { key, idle: [], waiting: [], open: 0 };
    origins.set(key, origin);
    return origin;
  }

  function queue(origin: Origin, exchange: Exchange): void {
    origin.waiting.push(exchange);
    exchange.drop = () => {
      const place = origin.waiting.indexOf(exchange);
      if (place !== -1) origin.waiting.splice(place, 1);
    };
  }

  function openSlot(origin: Origin, { call, target }: Request): Slot {
    const client = new UndiciClient(target.origin, {
      pipelining: 1,
      keepAliveTimeout: IDLE_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
      // How long a call may take is the exchange's to say.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: ({ hostname, port, protocol }, done) => {
        const secure = protocol === 'https:';
        const line = openLine({
          host: hostname,
          port: Number(port) || (secure ? 443 : 80),
          secure,
          tls: call.tls,
        });
        slot.line = line;
        slot.expectHead = tolerateContinue(line.socket);
        slot.exchange?.assign(line);
        line.socket.once(secure ? 'secureConnect' : 'connect', () => done(null, line.socket));
        line.socket.on('error', (error) => {
          if (line.stage !== 'ready') done(error, null);
        });
      },
    });
    const slot: Slot = { origin, client, exchange: undefined, line: undefined, expectHead: () => {} };
    origin.open += 1;
    slots.add(slot);
    // While a call waits on it, undici opens the next connection by itself.
    client.on('disconnect', () => {
      if (slot.exchange === undefined) discard(slot);
    });
    return slot;
  }

  function run(slot: Slot, exchange: Exchange): void {
    const { call, target } = exchange.request;
    slot.exchange = exchange;
    exchange.drop = () => discard(slot);
    if (slot.line !== undefined) exchange.assign(slot.line);
    slot.client.dispatch(
      {
        path: target.pathname + target.search,
        method: 'POST',
        headers: call.headers as Record<string, string>,
        body: call.body,
      },
      {
        onRequestStart: () => slot.expectHead(),
        onResponseStart: (controller, status) => {
          if (status >= 200) exchange.receive(status, controller.rawHeaders as RawHeaders);
        },
        onResponseData: (_controller, chunk) => exchange.collect(chunk),
        onResponseEnd: () => {
          release(slot);
          exchange.complete();
        },
        onResponseError: (_controller, error) => {
          exchange.fail(error);
          discard(slot);
        },
      },
    );
  }

  function release(slot: Slot): void {
    slot.exchange = undefined;
    const next = slot.origin.waiting.shift();
    if (next !== undefined) run(slot, next);
    else slot.origin.idle.push(slot);
  }

  /** Closes a connection for good and gives its place to a call that waits. */
  function discard(slot: Slot): void {
    if (!slots.delete(slot)) return;
    const { origin } = slot;
    const place = origin.idle.indexOf(slot);
    if (place !== -1) origin.idle.splice(place, 1);
    origin.open -= 1;
    slot.line?.socket.destroy();
    slot.client.destroy(null, () => {});
    const next = origin.waiting.shift();
    if (next !== undefined) run(openSlot(origin, next.request), next);
    else if (origin.open === 0) origins.delete(origin.key);
  }

  async function close(): Promise<void> {
    for (const slot of slots) discard(slot);
  }

  return { begin, close };
}
