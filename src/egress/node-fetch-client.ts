import { type AgentOptions, type ClientRequest, Agent as HttpAgent, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Socket } from 'node:net';
import fetch from 'node-fetch';
import { type Line, type OpenLine, whenReady } from './connect.ts';
import { type Client, type Exchange, IDLE_MS, WIRE_HEADERS } from './exchange.ts';
import { CallError } from './failure.ts';
import type { CallTls } from './send.ts';

/** What Node hands an agent for each request, as far as it is used here. */
interface Wanted {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly host?: string;
  readonly port?: number | string;
}

/** The same, on its way through an agent to where a connection may be opened for it. */
interface Marked extends Wanted {
  readonly mark: { exchange: Exchange | undefined };
}

/** Node calls this of every agent; its types leave it out. */
type Requestable = HttpAgent & {
  defaultPort: number;
  addRequest(request: ClientRequest, wanted: Marked): void;
};

/** Told when a connection is ready for its first request. */
type Created = (error: Error | null, socket?: Socket) => void;

/** The default client. Requests are seen here as Node makes them: node-fetch tells neither connection nor cause. */
export function createNodeFetchClient(openLine: OpenLine, maxSockets: number): Client {
  const lines = new WeakMap<Socket, Line>();
  const kept: AgentOptions = { keepAlive: true, maxSockets, scheduling: 'lifo', timeout: IDLE_MS };
  const agents = { 'http:': createAgent('http:', kept), 'https:': createAgent('https:', kept) };

  function createAgent(protocol: 'http:' | 'https:', options: AgentOptions): Requestable {
    const agent = protocol === 'https:' ? new HttpsAgent(options) : new HttpAgent(options);
    const secure = protocol === 'https:';
    const createConnection = ({ host = '', port, ca, cert, key, mark }: Marked, done: Created): void => {
      const { exchange } = mark;
      // The agent keeps what it wanted for as long as the connection lives.
      mark.exchange = undefined;
      const line = openLine({ host, port: Number(port), secure, tls: ownTls({ ca, cert, key }) });
      lines.set(line.socket, line);
      if (exchange !== undefined) accompany(exchange, line);
      whenReady(line, secure, (error) => (error === undefined ? done(null, line.socket) : done(error)));
    };
    return Object.assign(agent, { createConnection }) as unknown as Requestable;
  }

  function begin(exchange: Exchange): void {
    const { call, target, again } = exchange.request;
    const protocol = target.secure ? 'https:' : 'http:';
    const shared = again ? createAgent(protocol, {}) : agents[protocol];
    // What Node asks of an agent; one for each call, to learn which request is the call's.
    const agent = {
      protocol,
      defaultPort: shared.defaultPort,
      keepAlive: !again,
      maxSockets: shared.maxSockets,
      addRequest(request: ClientRequest, wanted: Wanted) {
        follow(request, exchange);
        // Part of the name under which an agent keeps connections: no endpoint uses one with another's certificate.
        shared.addRequest(request, Object.assign(wanted, call.tls, { mark: { exchange } }));
      },
    };
    fetch(target.href, {
      method: 'POST',
      headers: { ...WIRE_HEADERS, ...call.headers },
      body: call.body,
      redirect: 'manual',
      compress: false,
      insecureHTTPParser: false,
      agent: agent as unknown as HttpAgent,
    }).catch((error: unknown) => exchange.fail(error));
  }

  function follow(request: ClientRequest, exchange: Exchange): void {
    exchange.carrier = request;
    request.once('socket', (socket: Socket) => {
      const line = lines.get(socket);
      if (line !== undefined) exchange.assign(line);
    });
    let response: IncomingMessage | undefined;
    request.once('response', (incoming: IncomingMessage) => {
      response = incoming;
      exchange.receive(incoming.statusCode ?? 0, incoming.rawHeaders);
      incoming.on('data', (chunk: Buffer) => exchange.collect(chunk));
      incoming.on('end', () => exchange.complete());
      incoming.on('error', (error) => exchange.fail(error));
    });
    request.once('upgrade', (_response, socket) => {
      socket.destroy();
      exchange.fail(new CallError('protocol_error', 'the answer switches protocols'));
    });
    request.on('error', (error) => {
      // What came before a body broke off is still on its way; this makes it arrive.
      response?.read();
      exchange.fail(error);
    });
  }

  /** While a connection is being opened the request knows nothing of it. */
  function accompany(exchange: Exchange, line: Line): void {
    const request = exchange.carrier;
    exchange.assign(line);
    exchange.carrier = {
      destroy() {
        line.socket.destroy();
        request?.destroy();
      },
    };
  }

  async function close(): Promise<void> {
    agents['http:'].destroy();
    agents['https:'].destroy();
  }

  return { begin, close };
}

function ownTls({ ca, cert, key }: Wanted): CallTls | undefined {
  if (ca === undefined && cert === undefined && key === undefined) return undefined;
  return { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
}
