import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseSecret } from '../domain/signing.ts';
import { sendAnswer } from './adapters/node-http.ts';
import { type Handle, handleOnce } from './handle-once.ts';
import { readAttempt, readHeader, readIdempotencyKey } from './headers.ts';
import { createLedger, type PracticeCall, type PracticeEffect, toResult } from './practice-ledger.ts';
import { readBody } from './read-body.ts';
import { receive } from './receive.ts';
import type { Answer } from './store.ts';
import { createMemoryStore } from './store-memory.ts';

export type { PracticeCall, PracticeEffect };

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

function checkSecrets(secrets: readonly string[]): readonly string[] {
  for (const secret of secrets) parseSecret(secret);
  return secrets;
}

/** A pause that `cancel` leaves without end: what waits for it is never heard of again. */
function createPauses(): { pause(ms: number): Promise<void>; cancel(): void } {
  const timers = new Set<NodeJS.Timeout>();
  return {
    pause: (ms) =>
      new Promise((resolve) => {
        const timer = setTimeout(() => {
          timers.delete(timer);
          resolve();
        }, ms);
        timers.add(timer);
      }),
    cancel() {
      for (const timer of timers) clearTimeout(timer);
    },
  };
}

/**
 * A receiver for development, demonstrations and drills; its ledger, on the memory store of the kit, is the judge.
 *
 * Throws a Refusal for a secret that is none.
 */
export async function startPracticeReceiver(options: PracticeOptions = {}): Promise<PracticeReceiver> {
  const { host = '127.0.0.1', path, retryAfterSeconds, delayMs = 0, onCall } = options;
  let secrets = checkSecrets(options.secrets ?? []);
  let script: readonly ScriptedAnswer[] = options.hang ? ['hang'] : (options.answers ?? []);
  let step = 0;
  let receipts = 0;
  let store = createMemoryStore();
  let ledger = createLedger();
  const pauses = createPauses();

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
    const deliveryId = readHeader(headers, 'webhook-id');
    const call = {
      at: new Date(),
      key: readIdempotencyKey(headers) || undefined,
      deliveryId,
      attempt: readAttempt(headers),
      bodySha256: createHash('sha256')
        .update(body ?? '')
        .digest('hex'),
    };
    // What began before a reset is noted in the ledger that the reset threw away.
    const { note } = ledger;
    if (body === undefined) {
      const refused = { ...call, verified: 'payload_too_large', answered: 413, kind: 'refused' } as const;
      note(refused);
      onCall?.(refused);
      return sendAnswer(response, { status: 413, headers: { connection: 'close' } });
    }

    let scripted: ScriptedAnswer | undefined;
    const handle: Handle<undefined> = async () => {
      scripted = nextScripted();
      if (delayMs > 0) await pauses.pause(delayMs);
      return toAnswer(scripted);
    };
    const checked = secrets.length > 0;
    const received = checked
      ? await receive({ request: { headers, body }, secret: secrets, store, handle })
      : await handleOnce({ headers, body, deliveryId, store, handle });
    const result = toResult(received);
    const silent = scripted === 'hang' || scripted === 'lost';
    const noted = {
      ...call,
      verified: checked ? result.verified : 'not_checked',
      answered: silent ? undefined : result.answered,
      kind: result.kind,
    };
    note(noted);
    onCall?.(noted);
    if (scripted === 'lost') response.destroy();
    else if (!silent) sendAnswer(response, received.answer);
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
    effects: () => ledger.effects(),
    calls: () => ledger.calls(),
    setAnswers(answers) {
      script = answers;
      step = 0;
    },
    setSecrets(next) {
      secrets = checkSecrets(next);
    },
    reset() {
      store = createMemoryStore();
      ledger = createLedger();
      step = 0;
    },
    async close() {
      pauses.cancel();
      server.closeAllConnections();
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    },
  };
}
