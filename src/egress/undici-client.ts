import { Client as UndiciClient } from 'undici';
import { type Line, type OpenLine, whenReady } from './connect.ts';
import { MAX_HEADER_BYTES, type RawHeaders } from './evidence.ts';
import { type Client, type Exchange, IDLE_MS, type Request, WIRE_HEADERS } from './exchange.ts';
import { tolerateContinue } from './interim.ts';
import type { Call } from './send.ts';

const ALWAYS = Object.entries(WIRE_HEADERS).flat();

/** One undici client is one connection; it opens another when the server closed the first. */
interface Slot {
  readonly origin: Origin;
  readonly client: UndiciClient;
  exchange: Exchange | undefined;
  line: Line | undefined;
  expectHead: () => void;
  /** Closes the connection for good. */
  destroy(): void;
}

interface Origin {
  readonly key: string;
  /** Used as a stack: under little load few connections are kept in use and the others go. */
  readonly idle: Slot[];
  open: number;
}

/**
 * The fast lane. Connections are kept here rather than in undici's own pool, so that each call is known to its
 * connection: that is where the evidence comes from, and how a connection that was dead before its use is told.
 */
export function createUndiciClient(openLine: OpenLine): Client {
  const origins = new Map<string, Origin>();
  const slots = new Set<Slot>();

  function begin(exchange: Exchange): void {
    const origin = originOf(exchange.request);
    const kept = exchange.request.again ? undefined : origin.idle.pop();
    run(kept ?? openSlot(origin, exchange.request), exchange);
  }

  function originOf({ target, call }: Request): Origin {
    const key = call.tls === undefined ? target.origin : `${target.origin} ${JSON.stringify(call.tls)}`;
    const known = origins.get(key);
    if (known !== undefined) return known;
    const origin: Origin = { key, idle: [], open: 0 };
    origins.set(key, origin);
    return origin;
  }

  function openSlot(origin: Origin, { target, call: { tls } }: Request): Slot {
    const client = new UndiciClient(target.origin, {
      pipelining: 1,
      keepAliveTimeout: IDLE_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
      // How long a call may take is the exchange's to say.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: ({ hostname, port, protocol }, done) => {
        const secure = protocol === 'https:';
        const line = openLine({ host: hostname, port: Number(port) || (secure ? 443 : 80), secure, tls });
        slot.line = line;
        slot.expectHead = tolerateContinue(line.socket);
        slot.exchange?.assign(line);
        whenReady(line, secure, (error) =>
          error === undefined ? done(null, line.socket) : done(error, null),
        );
      },
    });
    const slot: Slot = {
      origin,
      client,
      exchange: undefined,
      line: undefined,
      expectHead: () => {},
      destroy: () => discard(slot),
    };
    origin.open += 1;
    slots.add(slot);
    // While a call waits on it, undici opens the next connection by itself.
    client.on('disconnect', () => {
      if (slot.exchange === undefined) slot.destroy();
    });
    return slot;
  }

  function run(slot: Slot, exchange: Exchange): void {
    const { call, target } = exchange.request;
    slot.exchange = exchange;
    exchange.carrier = slot;
    if (slot.line !== undefined) exchange.assign(slot.line);
    slot.client.dispatch(
      {
        path: target.path,
        method: 'POST',
        headers: flatten(call.headers),
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
          slot.destroy();
        },
      },
    );
  }

  function release(slot: Slot): void {
    // Its call ended before the answer did, and the rest of the answer was in the same read.
    if (!slots.has(slot)) return;
    slot.exchange = undefined;
    slot.origin.idle.push(slot);
  }

  function discard(slot: Slot): void {
    if (!slots.delete(slot)) return;
    const { origin } = slot;
    const place = origin.idle.indexOf(slot);
    if (place !== -1) origin.idle.splice(place, 1);
    origin.open -= 1;
    slot.line?.socket.destroy();
    slot.client.destroy(null, () => {});
    if (origin.open === 0) origins.delete(origin.key);
  }

  async function close(): Promise<void> {
    for (const slot of slots) slot.destroy();
  }

  return { begin, close };
}

/** Names and values in turn: undici takes them several times faster than a merged object. */
function flatten(headers: Call['headers']): string[] {
  const list = [...ALWAYS];
  for (const name in headers) list.push(name, headers[name] as string);
  return list;
}
