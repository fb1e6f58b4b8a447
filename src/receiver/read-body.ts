import type { IncomingMessage } from 'node:http';

/** The sender's bodies are at most 1 MiB of payload and an envelope. */
export const MAX_BODY_BYTES = 2 * 1024 * 1024;

/** The raw bytes of a request; undefined when there are more than allowed (the rest is thrown away). Rejects when the caller hangs up. */
export function readBody(
  request: IncomingMessage,
  maxBytes: number = MAX_BODY_BYTES,
): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBytes) chunks.push(chunk);
      else resolve(undefined);
    });
    request.once('end', () => resolve(Buffer.concat(chunks)));
    request.once('error', reject);
    request.once('close', () => reject(new Error('the caller hung up before the body was complete')));
  });
}
