/** A physical line of a file. */
export interface Line {
  /** From 1. */
  readonly number: number;
  /** Where it ends in the file, in bytes. */
  readonly endByte: number;
  /** Without its line end; undefined: it is not UTF-8, or too long. */
  readonly text: string | undefined;
}

const LINE_FEED = 0x0a;
const UTF8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Splits a stream into lines at LF or CRLF, and nowhere else: U+2028 may stand in a JSON string.
 *
 * @param maxBytes  of a line; a longer one is passed over without being kept in memory
 */
export async function* readLines(chunks: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Line> {
  let parts: Buffer[] = [];
  let bytes = 0;
  let endByte = 0;
  let number = 0;

  function keep(part: Buffer): void {
    bytes += part.length;
    if (bytes <= maxBytes) parts.push(part);
    else parts = [];
  }

  function cut(): Line {
    number += 1;
    const line = { number, endByte, text: bytes > maxBytes ? undefined : decode(Buffer.concat(parts)) };
    parts = [];
    bytes = 0;
    return line;
  }

  for await (const chunk of chunks) {
    let from = 0;
    for (let at = chunk.indexOf(LINE_FEED); at >= 0; at = chunk.indexOf(LINE_FEED, from)) {
      keep(chunk.subarray(from, at));
      endByte += at + 1 - from;
      from = at + 1;
      yield cut();
    }
    keep(chunk.subarray(from));
    endByte += chunk.length - from;
  }
  if (bytes > 0) yield cut();
}

/** A byte order mark at the beginning goes, too. */
function decode(bytes: Buffer): string | undefined {
  try {
    const text = UTF8.decode(bytes);
    return text.endsWith('\r') ? text.slice(0, -1) : text;
  } catch {
    return undefined;
  }
}
