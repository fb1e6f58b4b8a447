import { judgeTarget, type TargetFault } from '../domain/target.ts';
import type { Log } from '../runtime/log.ts';
import { createAddressGuard } from './address-guard.ts';
import { createOpenLine } from './connect.ts';
import { detail } from './evidence.ts';
import { Exchange, type Request, type Target } from './exchange.ts';
import { createGate, type Gate } from './gate.ts';
import { createNodeFetchClient } from './node-fetch-client.ts';
import type { Answer, Call, Send } from './send.ts';
import { createTargetRules } from './target-rules.ts';
import { createUndiciClient } from './undici-client.ts';

export interface EgressConfig {
  readonly client: 'node-fetch' | 'undici';
  /** CIDRs that may be called although they are not public. */
  readonly allow: readonly string[];
  readonly allowHttp: boolean;
  /** Connections to one host and port; 64 when undefined. */
  readonly maxSockets?: number;
}

export interface Egress {
  readonly send: Send;
  close(): Promise<void>;
}

const MAX_REMEMBERED = 1_000;
const DEFAULT_MAX_SOCKETS = 64;

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[\t -~]*$/;

/** Opens the way out to customers' endpoints; proxies named by the environment are not used. */
export function openEgress(config: EgressConfig, log?: Pick<Log, 'info'>): Egress {
  const judge = createJudge(config);
  const openLine = createOpenLine(createAddressGuard(config.allow), tellOnce(log));
  const { maxSockets = DEFAULT_MAX_SOCKETS } = config;
  const client =
    config.client === 'undici' ? createUndiciClient(openLine) : createNodeFetchClient(openLine, maxSockets);
  const gate = createGate(client, maxSockets);
  const running = new Set<Exchange>();
  let closed = false;

  function send(call: Call): Promise<Answer> {
    const target = judge(call.url);
    if ('reason' in target) return notSent(target.reason, `the URL ${target.message}`);
    const unsendable = findUnsendable(call.headers);
    if (unsendable !== undefined) return notSent('invalid_request', `header ${unsendable} cannot be sent`);
    if (closed || call.signal?.aborted === true) return notSent('aborted', 'the call was given up');
    return carry(gate, running, { call, target, startMs: performance.now(), again: false });
  }

  async function close(): Promise<void> {
    closed = true;
    for (const exchange of running) exchange.abort();
    await client.close();
  }

  return { send, close };
}

/** Judges the URL of each call; the verdict on a text never changes, and few texts make up most of the calls. */
function createJudge(config: EgressConfig): (url: string) => Target | TargetFault {
  const rules = createTargetRules(config);
  const judged = new Map<string, Target | TargetFault>();
  return (text) => {
    let target = judged.get(text);
    if (target === undefined) {
      const url = judgeTarget(text, rules);
      target = url instanceof URL ? targetAt(url) : url;
      if (judged.size >= MAX_REMEMBERED) judged.clear();
      judged.set(text, target);
    }
    return target;
  };
}

function targetAt(url: URL): Target {
  const { href, origin, pathname, search, protocol } = url;
  return { url, href, origin, path: pathname + search, secure: protocol === 'https:' };
}

/**
 * Carries a call to its end. If the server closed a kept connection just as it was used again, the same bytes go once
 * more, at once, on a new one: nothing was said about them.
 */
function carry(gate: Gate, running: Set<Exchange>, request: Request): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const exchange = new Exchange(request, (end) => {
      running.delete(exchange);
      gate.leave(exchange);
      if (end.kind === 'answer') resolve(end.answer);
      else if (end.kind === 'fault') reject(end.error);
      else resolve(carry(gate, running, { ...request, again: true }));
    });
    running.add(exchange);
    gate.enter(exchange);
  });
}

function notSent(error: string, reason: string): Promise<Answer> {
  return Promise.resolve({ sent: false, error, detail: detail(reason), durationMs: 0 });
}

/**
 * A header of a row that came past the checks at creation. One client would trim such a value, another refuse it, a
 * third encode it.
 *
 * @returns its name, escaped; undefined when there is none
 */
function findUnsendable(headers: Call['headers']): string | undefined {
  for (const name in headers) {
    if (!NAME.test(name) || !VALUE.test(headers[name] as string)) return JSON.stringify(name.slice(0, 100));
  }
  return undefined;
}

function tellOnce(log: Pick<Log, 'info'> | undefined): (address: string) => void {
  const told = new Set<string>();
  return (address) => {
    if (told.has(address) || told.size >= MAX_REMEMBERED) return;
    told.add(address);
    log?.info('egress.listed_address', { address });
  };
}
