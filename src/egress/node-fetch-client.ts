import { type AgentOptions, type ClientRequest, Agent as HttpAgent, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Socket } from 'node:net';
import fetch from 'node-fetch';
import type { Line, OpenLine } from './connect.ts';
import { type Client, type Exchange, IDLE_MS } from './exchange.ts';
import { CallError } from './failure.ts';
import type { CallTls } from './send.ts';

/** What Node hands an agent for each request, as far as it is used here. */
interface Wanted extends CallTls {
  readonly host?: string;
  readonly port?: number | string;
}

/** Node calls this of every agent; its types leave it out. */
type Requestable = HttpAgent & {
  defaultPort: number;
  addRequest(request: ClientRequest, wanted: Wanted): void;
};

/** The default client. Requests are seen here as Node makes them: node-fetch tells neither connection nor cause. */
export function createNodeFetchClient(openLine: OpenLine, maxSockets: number): Client {
  const lines = new WeakMap<Socket, Line>();
  const kept: AgentOptions = { keepAlive: true, maxSockets, scheduling: 'lifo', timeout: IDLE_MS };
  const agents = { 'http:': createAgent('http:', kept), 'https:': createAgent('https:', kept) };

  function createAgent(protocol: 'http:' | 'https:', options: AgentOptions): Requestable {
    const agent = protocol === 'https:' ? new HttpsAgent(options) : new HttpAgent(options);
    const createConnection = ({ host, port, ca, cert, key }: Wanted): Socket => {
      const line = openLine({
        host: host ?? '',
        port: Number(port),
        secure: protocol === 'https:',
        tls:
          ca === undefined && cert === undefined && key === undefined
            ? undefined
            : ({ ca, cert, key } as CallTls),
      });
      lines.set(line.socket, line);
      return line.socket;
    };
    return Object.assign(agent, { createConnection }) as unknown as Requestable;
  }

  function begin(exchange: Exchange): void {
    const { call, target, again } = exchange.request;
    const protocol = target.protocol === 'https:' ? 'https:' : 'http:';
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
        shared.addRequest(request, call.tls === undefined ? wanted : { ...wanted, ...call.tls });
      },
    };
    fetch(target.href, {
      method: 'POST',
      headers: call.headers as Record<string, string>,
      body: call.body,
      redirect: 'manual',
      compress: false,
      insecureHTTPParser: false,
      agent: agent as unknown as HttpAgent,
    }).then(
      ({ body }) => {
        if (body === null) return exchange.complete();
        body.on('data', (chunk: Buffer) => exchange.collect(chunk));
        body.on('end', () => exchange.complete());
        body.on('error', (error: Error) => exchange.fail(error));
      },
      (error: unknown) => exchange.fail(error),
    );
  }

  function follow(request: ClientRequest, exchange: Exchange): void {
    exchange.drop = () => request.destroy();
    request.once('socket', (socket: Socket) => {
      const line = lines.get(socket);
      if (line !== undefined) exchange.assign(line);
    });
    request.once('response', (response: IncomingMessage) => {
      exchange.receive(response.statusCode ?? 0, response.rawHeaders);
    });
    request.once('upgrade', (_response, socket) => {
      socket.destroy();
      exchange.fail(new CallError('protocol_error', 'the answer switches protocols'));
    });
    request.on('error', (error) => exchange.fail(error));
  }

  async function close(): Promise<void> {
    agents['http:'].destroy();
    agents['https:'].destroy();
  }

  return { begin, close };
}
