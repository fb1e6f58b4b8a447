import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseSecret } from '../domain/signing.ts';
import { sendAnswer } from './adapters/node-http.ts';
import { type Handle, handleOnce } from './handle-once.ts';
import { readAttempt, readHeader, readIdempotencyKey } from './headers.ts';
import { readBody } from './read-body.ts';
import { receive } from './receive.ts';
import type { Received } from './received.ts';
import type { Answer, Store } from './store.ts';
import { createMemoryStore } from './store-memory.ts';

/** A status; `hang`: nothing takes effect and no answer comes; `lost`: it takes effect and the answer gets lost. */
export type ScriptedAnswer = number | 'hang' | 'lost';

export interface PracticeOptions {
  /** Default: any free port. */
  readonly port?: number | undefined;
  /** Default `127.0.0.1`. */
  readonly host?: string | undefined;
  /** Default: every path is answered, and `url` ends in `/`. */
  readonly path?: string | undefined;
  /** Without any, signatures are not checked. */
  readonly secrets?: readonly string[] | undefined;
  /** One for each call that reaches the handler; the last one repeats. Default: 200. */
  readonly answers?: readonly ScriptedAnswer[] | undefined;
  /** Sent as `Retry-After` with every scripted answer that is not a 2xx. */
  readonly retryAfterSeconds?: number | undefined;
  /** The same as `answers: ['hang']`. */
  readonly hang?: boolean | undefined;
  /** How long the handler takes. */
  readonly delayMs?: number | undefined;
  readonly onCall?: ((call: PracticeCall) => void) | undefined;
}

/** One per key that took effect, i.e. whose handler answered 2xx for the first time. */
export interface PracticeEffect {
  readonly key: string;
  readonly deliveryId: string | undefined;
  readonly bodySha256: string;
  /** How often the key was called, before and after it took effect. */
  readonly calls: number;
  readonly firstAt: Date;
}

export interface PracticeCall {
  readonly at: Date;
  readonly key: string | undefined;
  readonly deliveryId: string | undefined;
  readonly attempt: number | undefined;
  readonly bodySha256: string;
  /** `true`, or why not: the code of the refusal, or `not_checked`. */
  readonly verified: true | string;
  /** The status; undefined when no answer was sent. */
  readonly answered: number | undefined;
  /**
   * `first`: it took effect now; `repeat`: it had before; `conflict`: 409 or 422; `failed`: the script said so;
   * `refused`: not verified, no key or too large.
   */
  readonly kind: 'first' | 'repeat' | 'conflict' | 'failed' | 'refused';
}

export interface PracticeReceiver {
  readonly port: number;
  readonly url: string;
  readonly effects: () => readonly PracticeEffect[];
  readonly calls: () => readonly PracticeCall[];
  readonly setAnswers: (answers: readonly ScriptedAnswer[]) => void;
  readonly setSecrets: (secrets: readonly string[]) => void;
  /** Forgets keys, effects and calls, and starts the script again. */
  readonly reset: () => void;
  readonly close: () => Promise<void>;
}

const KEY_CODES: readonly string[] = ['idempotency_key_missing', 'idempotency_key_invalid'];

function checkSecrets(secrets: readonly string[]): readonly string[] {
  for (const secret of secrets) parseSecret(secret);
  return secrets;
}

function kindOf(received: Received): PracticeCall['kind'] {
  switch (received.kind) {
    case 'handled':
      return 'first';
    case 'replayed':
      return 'repeat';
    case 'declined':
      return 'failed';
    case 'refused':
      return received.answer.status === 409 || received.answer.status === 422 ? 'conflict' : 'refused';
  }
}

function verifiedAs(received: Received, kind: PracticeCall['kind']): true | string {
  if (received.kind !== 'refused' || kind === 'conflict' || KEY_CODES.includes(received.code)) return true;
  return received.code;
}

/**
 * A receiver for development, demonstrations and drills; its ledger, the memory store of the kit, is the judge.
 *
 * Throws a Refusal for a secret that is none.
 */
export async function startPracticeReceiver(options: PracticeOptions = {}): Promise<PracticeReceiver> {
  const { host = '127.0.0.1', path, retryAfterSeconds, delayMs = 0, onCall } = options;
  let secrets = checkSecrets(options.secrets ?? []);
  let script: readonly ScriptedAnswer[] = options.hang ? ['hang'] : (options.answers ?? []);
  let step = 0;
  let receipts = 0;
  let store: Store<undefined> = createMemoryStore();
  let calls: PracticeCall[] = [];
  const callsByKey = new Map<string, number>();
  const effects = new Map<string, Omit<PracticeEffect, 'calls'>>();
  const timers = new Set<NodeJS.Timeout>();

  function pause(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        timers.delete(timer);
        resolve();
      }, delayMs);
      timers.add(timer);
    });
  }

  function nextScripted(): ScriptedAnswer {
    const scripted = script[Math.min(step, script.length - 1)] ?? 200;
    step += 1;
    return scripted;
  }

  function toAnswer(scripted: ScriptedAnswer): Answer {
    // A hanging call must not count as an effect; its 504 is never sent.
    const status = scripted === 'lost' ? 200 : scripted === 'hang' ? 504 : scripted;
    if (status >= 200 && status <= 299) {
      receipts += 1;
      return { status, headers: { 'webhook-receipt': `practice-${receipts}` } };
    }
    return retryAfterSeconds === undefined
      ? { status }
      : { status, headers: { 'retry-after': String(retryAfterSeconds) } };
  }

  async function answerCall(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (path !== undefined && request.url !== path) return sendAnswer(response, { status: 404 });
    const body = await readBody(request);
    const { headers } = request;
    const at = new Date();
    const key = readIdempotencyKey(headers) || undefined;
    const deliveryId = readHeader(headers, 'webhook-id');
    const bodySha256 = createHash('sha256')
      .update(body ?? '')
      .digest('hex');
    const ledger = store;

    function note(call: Pick<PracticeCall, 'verified' | 'answered' | 'kind'>): void {
      // What began before a reset is not part of what follows it.
      if (ledger !== store) return;
      const noted = { at, key, deliveryId, attempt: readAttempt(headers), bodySha256, ...call };
      calls.push(noted);
      if (key !== undefined && call.kind !== 'refused') callsByKey.set(key, (callsByKey.get(key) ?? 0) + 1);
      if (key !== undefined && call.kind === 'first') {
        effects.set(key, { key, deliveryId, bodySha256, firstAt: at });
      }
      onCall?.(noted);
    }

    if (body === undefined) {
      note({ verified: 'payload_too_large', answered: 413, kind: 'refused' });
      return sendAnswer(response, { status: 413, headers: { connection: 'close' } });
    }
    let scripted: ScriptedAnswer | undefined;
    const handle: Handle<undefined> = async () => {
      scripted = nextScripted();
      if (delayMs > 0) await pause();
      return toAnswer(scripted);
    };
    const received =
      secrets.length === 0
        ? await handleOnce({ headers, body, deliveryId, store, handle })
        : await receive({ request: { headers, body }, secret: secrets, store, handle });
    const kind = kindOf(received);
    const verified = secrets.length === 0 ? 'not_checked' : verifiedAs(received, kind);
    const unanswered = scripted === 'hang' || scripted === 'lost';
    note({ verified, answered: unanswered ? undefined : received.answer.status, kind });
    if (scripted === 'lost') response.destroy();
    else if (!unanswered) sendAnswer(response, received.answer);
  }

  const server = createServer((request, response) => {
    // The only thing that goes wrong here is a caller who hangs up.
    answerCall(request, response).catch(() => response.destroy());
  });
  // A sender's idle connection must not close under its next call.
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, host, resolve);
  });
  const { port } = server.address() as AddressInfo;

  return {
    port,
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}${path ?? '/'}`,
    effects: () =>
      [...effects.values()].map((effect) => ({ ...effect, calls: callsByKey.get(effect.key) ?? 0 })),
    calls: () => calls,
    setAnswers(answers) {
      script = answers;
      step = 0;
    },
    setSecrets(next) {
      secrets = checkSecrets(next);
    },
    reset() {
      store = createMemoryStore();
      step = 0;
      calls = [];
      callsByKey.clear();
      effects.clear();
    },
    async close() {
      for (const timer of timers) clearTimeout(timer);
      server.closeAllConnections();
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    },
  };
}
