import { MAX_BODY_BYTES } from '../read-body.ts';
import { type ReceiverOptions, receive } from '../receive.ts';

/** The raw bytes; undefined when there are more than allowed. */
async function readWebBody(request: Request): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.byteLength;
    if (size > MAX_BODY_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** A handler of Web requests (Hono, Next.js, Remix, workers); rejects with what the handler or the store threw. */
export function webReceiver<Client>(
  options: ReceiverOptions<Client>,
): (request: Request) => Promise<Response> {
  return async (request) => {
    const body = await readWebBody(request);
    if (body === undefined) return new Response(null, { status: 413 });
    const { answer } = await receive({ ...options, request: { headers: request.headers, body } });
    return new Response(answer.body ?? null, { status: answer.status, headers: { ...answer.headers } });
  };
}
