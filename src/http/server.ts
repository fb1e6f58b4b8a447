import type { Socket } from 'node:net';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Config } from '../runtime/config.ts';
import type { Log } from '../runtime/log.ts';
import type { Traces } from '../runtime/traces.ts';
import { SCHEMAS } from './answers.ts';
import { addApi } from './api.ts';
import { addDocument, addDocumentRoute } from './openapi.ts';
import type { Api } from './parts.ts';
import { explainListening } from './port.ts';
import { createProblem, PROBLEM_TYPE, type Problem, toProblem } from './problems.ts';
import { addJsonParser, compileValidator } from './read.ts';
import { addOperationRoutes, type OperationOptions } from './routes/operation.ts';
import { addTraces } from './trace-requests.ts';

export interface HttpOptions extends OperationOptions {
  readonly log: Log;
  readonly http: Config['http'];
  /** Undefined: none are made. */
  readonly traces?: Traces | undefined;
  /** Undefined: this process serves no API. */
  readonly api: Api | undefined;
}

export interface HttpServer {
  /** Where it listens. */
  readonly url: string;
  readonly port: number;
  /** Takes no more connections and waits for the requests in hand. */
  close(): Promise<void>;
}

/** A request must have arrived in full by then. */
const REQUEST_TIMEOUT_MS = 60_000;
/** Longer than the usual idle time of load balancers, so that they close first. */
const KEEP_ALIVE_MS = 75_000;
/** Of names and ids in paths. */
const MAX_PARAMETER_LENGTH = 200;
const OUTAGE_QUIET_MS = 10_000;
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** Serves health and metrics, and the API where there is one. */
export async function startHttpServer(options: HttpOptions): Promise<HttpServer> {
  const { log, http, api } = options;
  let quietUntilMs = 0;
  const app = Fastify({
    ...(api === undefined ? {} : { bodyLimit: api.maxBodyBytes }),
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    routerOptions: { maxParamLength: MAX_PARAMETER_LENGTH },
    // What is under way when the server stops is carried out; the connection is closed after it.
    return503OnClosing: false,
    frameworkErrors: (error, request, reply) => {
      answerError(error, request as FastifyRequest, reply);
    },
    clientErrorHandler: answerUnreadable,
  });
  app.setValidatorCompiler(compileValidator as never);
  app.setSerializerCompiler(() => (value) => JSON.stringify(value));
  addJsonParser(app);
  for (const schema of SCHEMAS) app.addSchema(schema);
  const methods = noteMethods(app);
  const close = closeWhenQuiet(app);
  if (options.traces !== undefined) addTraces(app, options.traces);
  await addDocument(app);

  app.setErrorHandler(answerError);
  app.setNotFoundHandler((request, reply) => {
    sendProblem(reply, createProblem('not_found', `there is no ${request.method} ${pathOf(request)}`));
  });
  addOperationRoutes(app, options);
  if (api !== undefined) await addApi(app, api);
  addDocumentRoute(app);
  app.after(() => refuseOtherMethods(app, methods));

  await app.listen({ host: http.host, port: http.port }).catch((error: NodeJS.ErrnoException) => {
    throw explainListening(error, http);
  });
  const address = app.server.address();
  const port = typeof address === 'object' && address !== null ? address.port : http.port;
  const host = http.host.includes(':') ? `[${http.host}]` : http.host;
  const url = `http://${host}:${port}`;
  log.info('http_listening', { port, url, api: api !== undefined });
  return { url, port, close };

  /** An outage fails every request: one line in a while says it all. */
  function isWorthALine({ code }: Problem): boolean {
    if (code !== 'unavailable') return true;
    const nowMs = performance.now();
    if (nowMs < quietUntilMs) return false;
    quietUntilMs = nowMs + OUTAGE_QUIET_MS;
    return true;
  }

  function answerError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    const problem = toProblem(error);
    if (problem.status >= 500 && isWorthALine(problem)) {
      log.fault('http_fault', error, { method: request.method, route: request.routeOptions?.url });
    }
    sendProblem(reply, problem);
  }
}

function sendProblem(reply: FastifyReply, problem: Problem): void {
  if (problem.code === 'unauthorized') reply.header('www-authenticate', 'Bearer realm="duepost"');
  if (problem.code === 'unavailable') reply.header('retry-after', '1');
  reply.code(problem.status).type(PROBLEM_TYPE).serializer(JSON.stringify).send(problem);
}

/** The path without its query, which may hold anything. */
function pathOf(request: FastifyRequest): string {
  return request.url.split('?', 1)[0]?.slice(0, 200) ?? '';
}

/** What is no HTTP at all. */
function answerUnreadable(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const problem = createProblem('invalid_request', 'the request is not valid HTTP');
  const body = JSON.stringify(problem);
  socket.end(
    `HTTP/1.1 ${problem.status} Bad Request\r\nContent-Type: ${PROBLEM_TYPE}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

/** Ends connections as soon as no request is in hand: clients keep theirs open for the next one, which must not come. */
function closeWhenQuiet(app: FastifyInstance): () => Promise<void> {
  let inHand = 0;
  let isClosing = false;
  app.addHook('onRequest', (_request, reply, done) => {
    inHand += 1;
    reply.raw.once('close', () => {
      inHand -= 1;
      if (isClosing && inHand === 0) app.server.closeAllConnections();
    });
    done();
  });
  return async () => {
    isClosing = true;
    const closed = app.close();
    if (inHand === 0) app.server.closeAllConnections();
    await closed;
  };
}

/** The methods of every path, as routes are added. */
function noteMethods(app: FastifyInstance): Map<string, Set<string>> {
  const methods = new Map<string, Set<string>>();
  app.addHook('onRoute', ({ url, method }) => {
    const known = methods.get(url) ?? new Set();
    for (const name of [method].flat()) known.add(name);
    methods.set(url, known);
  });
  return methods;
}

/** A path that exists answers 405 to what it does not take, and says what it does. */
function refuseOtherMethods(app: FastifyInstance, methods: ReadonlyMap<string, ReadonlySet<string>>): void {
  for (const [url, known] of methods) {
    const allowed = [...known].sort().join(', ');
    const others = METHODS.filter((method) => !known.has(method));
    if (others.length === 0) continue;
    app.route({
      url,
      method: others,
      schema: { hide: true },
      // Before the body: it does not matter what is in it.
      onRequest: (request, reply, _done) => {
        reply.header('allow', allowed);
        sendProblem(
          reply,
          createProblem('method_not_allowed', `${request.method} is not possible here, but ${allowed} is`),
        );
      },
      handler: () => undefined,
    });
  }
}
