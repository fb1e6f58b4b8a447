import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP proxy on 127.0.0.1 that can be told to misbehave. */
export interface Proxy {
  readonly port: number;
  /** Resets every open connection; new ones are served. */
  cut(): void;
  /** While on, resets every new connection at once; open ones stay. */
  refuse(on: boolean): void;
  /** While on, forwards nothing in either direction, and connections stay open; afterwards what waited goes on. */
  freeze(on: boolean): void;
  /** While on, what servers answer is lost; what clients send arrives. */
  dropReplies(on: boolean): void;
  /** Calls back with every chunk a client sent, before it is forwarded. */
  onClientData(listener: (chunk: Buffer) => void): void;
  /**
   * Cuts, once, the first connection on which a client sends these bytes, even split over chunks.
   * The server gets them, but its answer is lost; with `deliver: false` it does not get them.
   *
   * @returns resolves when it happened
   */
  cutWhen(needle: Buffer | string, options?: { deliver: boolean }): Promise<void>;
  /** Sends bytes, as if the server had, on every connection whose client began by saying this. */
  say(bytes: Buffer, opening: string): void;
  /** Stops listening and resets what is open. */
  close(): Promise<void>;
}

interface Trap {
  needle: Buffer;
  deliver: boolean;
  sprung: () => void;
}

interface Link {
  client: Socket;
  server: Socket;
  /** The end of what the client sent: a needle may begin in it. */
  tail: Buffer;
  /** The beginning of what the client sent. */
  opening: Buffer;
}

const OPENING_BYTES = 4096;

/** Starts a proxy in front of a server on `targetHost` (127.0.0.1 if not given). */
export async function startProxy(target: { targetPort: number; targetHost?: string }): Promise<Proxy> {
  const links = new Set<Link>();
  const listeners: ((chunk: Buffer) => void)[] = [];
  const traps: Trap[] = [];
  let refusing = false;
  let frozen = false;
  let dropping = false;

  function cutLink(link: Link): void {
    link.client.resetAndDestroy();
    link.server.resetAndDestroy();
  }

  function findTrap(link: Link, chunk: Buffer): Trap | undefined {
    if (traps.length === 0) return undefined;
    const seen = Buffer.concat([link.tail, chunk]);
    const longest = Math.max(...traps.map(({ needle }) => needle.length));
    link.tail = seen.subarray(Math.max(0, seen.length - longest + 1));
    return traps.find(({ needle }) => seen.includes(needle));
  }

  function spring(trap: Trap, link: Link, chunk: Buffer): void {
    traps.splice(traps.indexOf(trap), 1);
    // Ending instead of resetting: the server is to read what it was sent before it notices.
    if (trap.deliver) link.server.end(chunk);
    else link.server.resetAndDestroy();
    link.client.resetAndDestroy();
    trap.sprung();
  }

  /** Forwards with backpressure, and passes the end on. */
  function forward(from: Socket, to: Socket, take: (chunk: Buffer) => boolean): void {
    from.on('data', (chunk) => {
      if (!take(chunk) || to.write(chunk)) return;
      from.pause();
      to.once('drain', () => frozen || from.resume());
    });
    from.on('end', () => to.end());
    from.on('error', () => to.destroy());
    from.on('close', () => to.destroy());
    if (frozen) from.pause();
  }

  function takeFromClient(link: Link, chunk: Buffer): boolean {
    if (link.opening.length < OPENING_BYTES) link.opening = Buffer.concat([link.opening, chunk]);
    for (const listener of listeners) listener(chunk);
    if (link.client.destroyed) return false;
    const trap = findTrap(link, chunk);
    if (trap !== undefined) spring(trap, link, chunk);
    return trap === undefined;
  }

  const listening = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    if (refusing) {
      client.on('error', () => {});
      client.resetAndDestroy();
      return;
    }
    const server = connect({
      host: target.targetHost ?? '127.0.0.1',
      port: target.targetPort,
      allowHalfOpen: true,
      noDelay: true,
    });
    const link: Link = { client, server, tail: Buffer.alloc(0), opening: Buffer.alloc(0) };
    links.add(link);
    client.once('close', () => links.delete(link));
    forward(client, server, (chunk) => takeFromClient(link, chunk));
    forward(server, client, () => !dropping && !client.destroyed);
  });
  listening.listen(0, '127.0.0.1');
  await once(listening, 'listening');

  return {
    port: (listening.address() as AddressInfo).port,
    cut: () => links.forEach(cutLink),
    refuse: (on) => {
      refusing = on;
    },
    freeze: (on) => {
      frozen = on;
      for (const { client, server } of links) {
        for (const socket of [client, server]) {
          if (on) socket.pause();
          else socket.resume();
        }
      }
    },
    dropReplies: (on) => {
      dropping = on;
    },
    onClientData: (listener) => {
      listeners.push(listener);
    },
    cutWhen: (needle, options = { deliver: true }) =>
      new Promise((resolve) => {
        traps.push({ needle: Buffer.from(needle), deliver: options.deliver, sprung: resolve });
      }),
    say: (bytes, opening) => {
      for (const link of links) if (link.opening.includes(opening)) link.client.write(bytes);
    },
    close: async () => {
      links.forEach(cutLink);
      if (listening.listening) await new Promise((resolve) => listening.close(resolve));
    },
  };
}
