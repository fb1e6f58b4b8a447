import { setMaxListeners } from 'node:events';
import type { Line } from './connect.ts';
import {
  describeRedirect,
  type Head,
  MAX_BODY_BYTES,
  type RawHeaders,
  readBody,
  readHead,
} from './evidence.ts';
import { CallError, classifyFailure, describeTimeout, type Failure, isReset } from './failure.ts';
import type { Answer, Call } from './send.ts';

/** How long an unused connection is kept: less than the 5 s after which many servers close it. */
export const IDLE_MS = 4_000;

/** What every request says besides: nothing is ever decompressed. */
export const WIRE_HEADERS = { accept: '*/*', 'accept-encoding': 'identity' };

/** A client that puts exchanges on the wire. */
export interface Client {
  /** Begins an exchange and reports to it. */
  begin(exchange: Exchange): void;
  close(): Promise<void>;
}

/** Where a call goes, with what is asked of it for every call worked out once. */
export interface Target {
  readonly url: URL;
  readonly href: string;
  readonly origin: string;
  /** With the query. */
  readonly path: string;
  readonly secure: boolean;
}

export interface Request {
  readonly call: Call;
  readonly target: Target;
  /** When the call began, on the clock of `performance.now()`. */
  readonly startMs: number;
  /** The request went out before and nothing came of it: it needs a connection that was never used. */
  readonly again: boolean;
}

/** An answer, a fault of ours, or a connection that was dead before anything was said on it. */
export type End =
  | { readonly kind: 'answer'; readonly answer: Answer }
  | { readonly kind: 'fault'; readonly error: unknown }
  | { readonly kind: 'stale' };

/**
 * One request and what comes of it, whichever client carries it: holds the time limit, gathers the evidence, and ends
 * exactly once; whatever a client reports afterwards is passed over. (A class, since one is made for every call.)
 */
export class Exchange {
  readonly request: Request;
  /** Set by the client: what is to be destroyed, and its connection with it, when this ends before the response does. */
  carrier: { destroy(): void } | undefined;
  /** Whether the client was told. */
  begun = false;
  readonly #onEnd: (end: End) => void;
  readonly #timer: NodeJS.Timeout;
  #ended = false;
  #line: Line | undefined;
  #reused = false;
  #bytesReadBefore = 0;
  #status: number | undefined;
  #head: Head | undefined;
  readonly #chunks: Buffer[] = [];
  #bodyBytes = 0;

  constructor(request: Request, onEnd: (end: End) => void) {
    this.request = request;
    this.#onEnd = onEnd;
    const { call, startMs, again } = request;
    const leftMs = again ? call.timeoutMs - (performance.now() - startMs) : call.timeoutMs;
    this.#timer = setTimeout(expire, leftMs, this);
    if (call.signal !== undefined) {
      // Hundreds of calls may share the signal of a shutdown; Node takes more than ten listeners for a leak.
      setMaxListeners(0, call.signal);
      call.signal.addEventListener('abort', this);
    }
  }

  /** A connection was given to this exchange; it may still be connecting. */
  assign(line: Line): void {
    if (line === this.#line) return;
    this.#line = line;
    this.#reused = line.calls > 0;
    this.#bytesReadBefore = line.socket.bytesRead;
    line.calls += 1;
  }

  /** The final status and headers came: from here on nothing changes what the answer is. */
  receive(status: number, headers: RawHeaders): void {
    if (this.#ended) return;
    if (status < 200) {
      this.fail(new CallError('protocol_error', 'the answer has no valid status'));
      return;
    }
    this.#status = status;
    this.#head = readHead(headers);
  }

  /** Part of the body came; what is beyond the limit is not waited for. */
  collect(chunk: Buffer): void {
    if (this.#ended) return;
    this.#chunks.push(chunk);
    this.#bodyBytes += chunk.length;
    if (this.#bodyBytes >= MAX_BODY_BYTES) this.#answer();
  }

  /** The response is complete, and the connection good for another call. */
  complete(): void {
    if (this.#ended) return;
    this.carrier = undefined;
    this.#answer();
  }

  /** The client gave up; after the headers that is only the end of the evidence. */
  fail(error: unknown): void {
    if (this.#ended) return;
    if (this.#status !== undefined) this.#answer();
    else if (this.#isStale(error)) this.#end({ kind: 'stale' });
    else {
      const failure = classifyFailure(error, this.#line);
      if (failure === undefined) this.#end({ kind: 'fault', error });
      else this.#answer(failure);
    }
  }

  expire(): void {
    if (this.#ended) return;
    const { timeoutMs } = this.request.call;
    this.#answer(this.#status === undefined ? describeTimeout(this.#line, timeoutMs) : undefined);
  }

  abort(): void {
    this.fail(new CallError('aborted', 'the call was given up'));
  }

  /** The call's signal says to give up (an EventTarget calls this). */
  handleEvent(): void {
    this.abort();
  }

  /** The server closed a kept connection as it was used again: it cannot have answered, and said nothing. */
  #isStale(error: unknown): boolean {
    return this.#reused && isReset(error) && this.#line?.socket.bytesRead === this.#bytesReadBefore;
  }

  #answer(failure?: Failure): void {
    const status = this.#status;
    const { startMs, target, again } = this.request;
    const answer: { -readonly [K in keyof Answer]: Answer[K] } = {
      sent: again || (this.#line?.stage === 'ready' && failure?.error !== 'invalid_request'),
      durationMs: Math.round(performance.now() - startMs),
      ...readBody(this.#chunks),
    };
    if (status !== undefined) answer.status = status;
    if (failure !== undefined) {
      answer.error = failure.error;
      answer.detail = failure.detail;
    } else if (status !== undefined && status >= 300 && status < 400) {
      answer.error = 'redirect_not_followed';
      answer.detail = describeRedirect(this.#head?.location, target.url);
    }
    if (this.#head !== undefined) answer.responseHeaders = this.#head.headers;
    if (this.#head?.retryAfter !== undefined) answer.retryAfter = this.#head.retryAfter;
    if (this.#line?.remoteAddress !== undefined) answer.remoteAddress = this.#line.remoteAddress;
    if (this.#line?.certificateSha256 !== undefined) answer.certificateSha256 = this.#line.certificateSha256;
    this.#end({ kind: 'answer', answer });
  }

  #end(end: End): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    this.request.call.signal?.removeEventListener('abort', this);
    this.carrier?.destroy();
    // Not only done with: as long as the two refer to each other, garbage collection costs a fifth of a call.
    this.carrier = undefined;
    this.#onEnd(end);
  }
}

function expire(exchange: Exchange): void {
  exchange.expire();
}
