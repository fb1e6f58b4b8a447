import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';

/** A server that does exactly what a test tells it to, byte by byte. */
export interface Peer {
  readonly port: number;
  readonly url: string;
  /** Connections that were taken. */
  readonly connections: Socket[];
  /** The requests that came complete, as text, in order. */
  readonly requests: string[];
  /** How many bytes of requests came, whether complete or not. */
  bytesReceived(): number;
  close(): Promise<void>;
}

/** What a peer does about a request: its number on the peer and on its connection begin at 1. */
export type Behaviour = (
  socket: Socket,
  request: { text: string; count: number; onConnection: number },
) => void;

const peers: Peer[] = [];

/** Closes every peer that was opened. */
export async function closePeers(): Promise<void> {
  for (const peer of peers.splice(0)) await peer.close();
}

export function openPeer(behaviour: Behaviour): Promise<Peer> {
  return listen(createServer, 'http', behaviour);
}

export function openTlsPeer(options: TlsOptions, behaviour: Behaviour): Promise<Peer> {
  return listen((onSocket) => createTlsServer(options, onSocket), 'https', behaviour);
}

/** A peer that speaks no HTTP: it is handed each connection as it is. */
export function openRawPeer(onSocket: (socket: Socket) => void): Promise<Peer> {
  return listen(
    () => createServer(onSocket),
    'https',
    () => {},
  );
}

export async function closed(socket: Socket | undefined): Promise<void> {
  if (socket !== undefined && !socket.destroyed)
    await new Promise((resolve) => socket.once('close', resolve));
}

/** A peer that answers everything with one text. */
export function respond(text: string | Buffer): Behaviour {
  return (socket) => socket.write(text);
}

export function response(status: string, headers: readonly string[] = [], body = ''): string {
  return [`HTTP/1.1 ${status}`, ...headers, `Content-Length: ${Buffer.byteLength(body)}`, '', body].join(
    '\r\n',
  );
}

async function listen(
  create: (onSocket: (socket: Socket) => void) => Server,
  scheme: string,
  behaviour: Behaviour,
): Promise<Peer> {
  const connections: Socket[] = [];
  const requests: string[] = [];
  const raw = new Set<Socket>();
  let bytesReceived = 0;
  const server = create((socket) => {
    connections.push(socket);
    let received = '';
    let onConnection = 0;
    socket.on('error', () => {});
    socket.on('data', (bytes: Buffer) => {
      bytesReceived += bytes.length;
      received += bytes.toString('latin1');
      for (let text = takeRequest(); text !== undefined; text = takeRequest()) {
        requests.push(text);
        onConnection += 1;
        behaviour(socket, { text, count: requests.length, onConnection });
      }
    });
    function takeRequest(): string | undefined {
      const head = received.indexOf('\r\n\r\n');
      if (head === -1) return undefined;
      const length = Number(/content-length: (\d+)/i.exec(received)?.[1] ?? 0);
      const end = head + 4 + length;
      if (received.length < end) return undefined;
      const text = received.slice(0, end);
      received = received.slice(end);
      return text;
    }
  });
  server.on('connection', (socket) => {
    raw.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => raw.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const peer: Peer = {
    port,
    url: `${scheme}://127.0.0.1:${port}/hook`,
    connections,
    requests,
    bytesReceived: () => bytesReceived,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of raw) socket.destroy();
      }),
  };
  peers.push(peer);
  return peer;
}
