import type { IncomingMessage } from 'node:http';
import { readBody } from '../read-body.ts';
import { type ReceiverOptions, receive } from '../receive.ts';

interface FastifyRequest {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: unknown;
}

interface FastifyReply {
  code(status: number): FastifyReply;
  headers(values: Record<string, string>): FastifyReply;
  send(body?: string): FastifyReply;
}

/** The part of a Fastify instance that is used. */
interface FastifyScope {
  removeAllContentTypeParsers(): void;
  addContentTypeParser(
    type: string,
    parser: (request: unknown, payload: IncomingMessage) => Promise<unknown>,
  ): unknown;
  post(path: string, handler: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>): unknown;
}

/**
 * A Fastify plugin with one `POST` route that keeps the raw bytes; the parsers of the rest of the application stay as
 * they are. What the handler or the store threw goes to Fastify's error handler.
 */
export function fastifyReceiver<Client>(
  options: ReceiverOptions<Client> & { readonly path: string },
): (scope: FastifyScope) => Promise<void> {
  return async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', async (_request, payload) => (await readBody(payload)) ?? 'too large');
    scope.post(options.path, async ({ headers, body }, reply) => {
      if (body === 'too large') return reply.code(413).send();
      // A request without a body never sees the parser.
      const bytes = body instanceof Uint8Array ? body : new Uint8Array();
      const { answer } = await receive({ ...options, request: { headers, body: bytes } });
      return reply
        .code(answer.status)
        .headers({ ...answer.headers })
        .send(answer.body);
    });
  };
}
