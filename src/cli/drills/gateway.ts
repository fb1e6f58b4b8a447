import { createHash } from 'node:crypto';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { readHeader, readIdempotencyKey } from '../../receiver/headers.ts';
import { readBody } from '../../receiver/read-body.ts';
import { VerificationError, verify } from '../../receiver/verify.ts';
import type { DrillCall, DrillReceiver, HandedOn, Script } from './receiver.ts';

/** Headers of one connection, not of the call (RFC 9110, 7.6.1), and the length, which is that of the bytes handed on. */
const OF_THE_CONNECTION = ['connection', 'keep-alive', 'transfer-encoding', 'content-length'];

interface ServiceAnswer {
  readonly status: number;
  readonly rawHeaders: readonly string[];
  readonly receipt: string | undefined;
  readonly body: Buffer;
}

/**
 * Stands in front of somebody's own service. Every call is handed on as it came; then, where the script says anything
 * but 2xx, the service's answer is thrown away and the scripted one sent instead: as far as the sender knows it failed.
 * That is what makes a service show whether it does a thing once.
 */
export async function startGateway(service: URL, script: Script): Promise<DrillReceiver> {
  const { answers = [200], retryAfterSeconds, delayMs = 0 } = script;
  const calls: DrillCall[] = [];
  const handedOn = new Map<string, HandedOn>();
  const closing = new AbortController();
  let secrets: readonly string[] = [];
  let step = 0;

  function note(key: string, deliveryId: string | undefined, answer: ServiceAnswer | undefined): void {
    const before = handedOn.get(key) ?? { key, deliveryId, answers: [], receipts: [] };
    const receipts = new Set([
      ...before.receipts,
      ...(answer?.receipt === undefined ? [] : [answer.receipt]),
    ]);
    handedOn.set(key, {
      ...before,
      answers: [...before.answers, answer?.status],
      receipts: [...receipts],
    });
  }

  async function answerCall(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = (await readBody(request, Number.POSITIVE_INFINITY)) as Buffer;
    const scripted = answers[Math.min(step, answers.length - 1)] ?? 200;
    step += 1;
    const key = readIdempotencyKey(request.headers) || undefined;
    const call = {
      key,
      bodySha256: createHash('sha256').update(body).digest('hex'),
      verified: check({ request, body, secrets }),
    };
    if (delayMs > 0) await sleep(delayMs, undefined, { signal: closing.signal });
    const answer = await handOn({ service, request, body, signal: closing.signal });
    if (key !== undefined) note(key, readHeader(request.headers, 'webhook-id'), answer);
    const answered = scripted >= 200 && scripted <= 299 ? (answer?.status ?? 502) : scripted;
    calls.push({ ...call, answered });
    if (answered === answer?.status) {
      response.writeHead(answered, withoutConnection(answer.rawHeaders)).end(answer.body);
    } else {
      const hint = retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) };
      response.writeHead(answered, hint).end();
    }
  }

  const server = createServer((request, response) => {
    // What goes wrong here is a caller who hangs up, or that the drill is over.
    answerCall(request, response).catch(() => response.destroy());
  });
  // A sender's idle connection must not close under its next call.
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    calls: () => calls,
    countEffects: () => undefined,
    handedOn: () => [...handedOn.values()],
    setSecrets(next) {
      secrets = next;
    },
    async close() {
      closing.abort();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** True, or why the signature is not believed. */
function check(call: {
  readonly request: IncomingMessage;
  readonly body: Buffer;
  readonly secrets: readonly string[];
}): true | string {
  try {
    verify({ headers: call.request.headers, body: call.body, secret: call.secrets, now: new Date() });
    return true;
  } catch (error) {
    if (error instanceof VerificationError) return error.code;
    throw error;
  }
}

/** Makes the call again, byte for byte, at the service; undefined: there was no answer. */
function handOn(call: {
  readonly service: URL;
  readonly request: IncomingMessage;
  readonly body: Buffer;
  readonly signal: AbortSignal;
}): Promise<ServiceAnswer | undefined> {
  const { service, request, body, signal } = call;
  const send = service.protocol === 'https:' ? httpsRequest : httpRequest;
  const headers = [
    ...withoutConnection(request.rawHeaders, ['host']),
    'Host',
    service.host,
    'Content-Length',
    String(body.length),
    'Connection',
    'close',
  ];
  return new Promise((resolve) => {
    const outgoing = send(service, { method: request.method ?? 'POST', headers, agent: false, signal });
    outgoing.once('error', () => resolve(undefined));
    outgoing.once('response', (answer) => {
      const receipt = readHeader(answer.headers, 'webhook-receipt');
      readBody(answer, Number.POSITIVE_INFINITY).then(
        (read) => {
          const { statusCode: status = 502, rawHeaders } = answer;
          resolve({ status, rawHeaders, receipt, body: read as Buffer });
        },
        () => resolve(undefined),
      );
    });
    outgoing.end(body);
  });
}

/** Names and values in turn, as the wire had them. */
function withoutConnection(raw: readonly string[], more: readonly string[] = []): string[] {
  const dropped = [...OF_THE_CONNECTION, ...more];
  return raw.flatMap((name, i) =>
    i % 2 === 1 || dropped.includes(name.toLowerCase()) ? [] : [name, raw[i + 1] ?? ''],
  );
}
