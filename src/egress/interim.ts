import type { Socket } from 'node:net';

const ONE = 0x31;
const ZERO = 0x30;
const TWO = 0x32;
const CR = 0x0d;
const LF = 0x0a;

/**
 * Lets undici take a `100 Continue` it did not ask for: RFC 9110, section 15.2 obliges a client to, and some servers
 * send one whenever they like, but undici gives up the connection. The status is changed to 102 as it is read, which
 * undici passes over like every other interim response.
 *
 * @returns what to call before each request: an answer's first line is looked for from there on
 */
export function tolerateContinue(socket: Socket): () => void {
  let looking = false;
  let position = 0;
  let lineLength = 0;
  let zeros = 0;

  function expectHead(): void {
    looking = true;
    position = 0;
    lineLength = 0;
  }

  function rewrite(chunk: Buffer): void {
    for (let i = 0; i < chunk.length; i += 1, position += 1) {
      const byte = chunk[i] as number;
      // "HTTP/1.1 100": the digits of the status are bytes 9 to 11 of a head.
      if (position === 9) {
        zeros = 0;
        if (byte !== ONE) {
          looking = false;
          return;
        }
      } else if (position === 10 || position === 11) {
        if (byte === ZERO) zeros += 1;
        if (zeros === 2) chunk[i] = TWO;
      }
      if (byte === LF && lineLength === 0 && position > 11) {
        position = -1;
      } else if (byte === LF) lineLength = 0;
      else if (byte !== CR) lineLength += 1;
    }
  }

  const read = socket.read.bind(socket);
  socket.read = (size?: number) => {
    const chunk = read(size);
    if (looking && chunk instanceof Buffer) rewrite(chunk);
    return chunk;
  };
  return expectHead;
}
