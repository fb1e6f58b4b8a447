import type { IncomingMessage, ServerResponse } from 'node:http';
import { readBody } from '../read-body.ts';
import { type ReceiverOptions, receive } from '../receive.ts';
import { sendAnswer } from './node-http.ts';

/** What is left of an Express request after the middleware before us. */
interface ExpressRequest extends IncomingMessage {
  body?: unknown;
}

/** The raw bytes: what `express.raw()` left, else read now; `express.json()` before us has destroyed them. */
async function rawBody(request: ExpressRequest): Promise<Uint8Array | undefined> {
  if (request.body instanceof Uint8Array) return request.body;
  if (request.readableEnded || request.body !== undefined) {
    throw new TypeError(
      'the body was parsed already: mount this route before express.json(), or use express.raw()',
    );
  }
  return readBody(request);
}

/** A route handler for Express 4 and 5; what the handler or the store threw goes to `next`. */
export function expressReceiver<Client>(
  options: ReceiverOptions<Client>,
): (request: ExpressRequest, response: ServerResponse, next: (error?: unknown) => void) => Promise<void> {
  return async (request, response, next) => {
    try {
      const body = await rawBody(request);
      if (body === undefined) return sendAnswer(response, { status: 413, headers: { connection: 'close' } });
      const { answer } = await receive({ ...options, request: { headers: request.headers, body } });
      sendAnswer(response, answer);
    } catch (error) {
      next(error);
    }
  };
}
