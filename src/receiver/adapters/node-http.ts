import type { IncomingMessage, ServerResponse } from 'node:http';
import { readBody } from '../read-body.ts';
import { type ReceiverOptions, receive } from '../receive.ts';
import type { Answer } from '../store.ts';

export interface NodeHttpOptions<Client> extends ReceiverOptions<Client> {
  /** Gets what the handler or the store threw; the call was answered with 500, so that it comes again. */
  readonly onError: (error: unknown) => void;
}

export function sendAnswer(response: ServerResponse, answer: Answer): void {
  response.writeHead(answer.status, answer.headers).end(answer.body);
}

/** A listener for `http.createServer`, or for a router that has not read the body. */
export function nodeHttpReceiver<Client>(
  options: NodeHttpOptions<Client>,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  return async (request, response) => {
    try {
      const body = await readBody(request);
      if (body === undefined) return sendAnswer(response, { status: 413, headers: { connection: 'close' } });
      const { answer } = await receive({ ...options, request: { headers: request.headers, body } });
      sendAnswer(response, answer);
    } catch (error) {
      if (!response.headersSent) sendAnswer(response, { status: 500 });
      options.onError(error);
    }
  };
}
