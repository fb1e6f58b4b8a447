import { X509Certificate } from 'node:crypto';
import { type LookupAddress, lookup as lookupName } from 'node:dns';
import { connect as connectTcp, isIP, type LookupFunction, Socket } from 'node:net';
import { connect as connectTls, createSecureContext, type SecureContext, type TLSSocket } from 'node:tls';
import type { AddressGuard } from './address-guard.ts';
import { CallError, codeOf } from './failure.ts';
import type { CallTls } from './send.ts';

/** One connection, and what is known of who is at its other end. */
export interface Line {
  readonly socket: Socket;
  stage: 'connecting' | 'handshake' | 'ready';
  /** Calls that were begun on it. */
  calls: number;
  remoteAddress: string | undefined;
  certificateSha256: string | undefined;
}

export interface Destination {
  /** A name or an address, without brackets. */
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
  readonly tls?: CallTls | undefined;
}

export type OpenLine = (destination: Destination) => Line;

/** Told the first time an address is called only because the operator allowed it. */
export type OnListedAddress = (address: string) => void;

/**
 * How long one of several addresses of a host is tried before the next. Node's 250 ms make every distant host with two
 * addresses unreachable; this leaves room for one lost packet. The last address has the rest of the call's time.
 */
const ADDRESS_ATTEMPT_MS = 2_000;

const MIN_TLS = 'TLSv1.2';
const MAX_REMEMBERED = 256;

/**
 * Opens connections to customers: the only place that does. An address is judged here, after the name is resolved and
 * before it is connected to, so that a name can't be checked as one address and called as another.
 */
export function createOpenLine(guard: AddressGuard, onListed: OnListedAddress): OpenLine {
  const lookup = createGuardedLookup(guard, onListed);
  const contextFor = createContexts();

  return ({ host, port, secure, tls }) => {
    // Node does not ask `lookup` about a host that is an address already.
    if (isIP(host) !== 0 && !admit(guard, host, onListed)) return deadLine(notAllowed(host));
    const options = {
      host,
      port,
      lookup,
      noDelay: true,
      keepAlive: true,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_MS,
    };
    if (!secure) return watch(connectTcp(options), false);
    const secureContext = contextFor(tls);
    if (secureContext instanceof CallError) return deadLine(secureContext);
    const socket = connectTls({
      ...options,
      // RFC 6066 knows no names of addresses, and no dot at the end.
      ...(isIP(host) === 0 ? { servername: host.replace(/\.$/, '') } : {}),
      ALPNProtocols: ['http/1.1'],
      secureContext,
      // Said outright, so that NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment has no say.
      rejectUnauthorized: true,
    });
    return watch(socket, true);
  };
}

/** Keeps a line's record up to date. Nothing may be written to it until it is ready: connected, and verified. */
function watch(socket: Socket, secure: boolean): Line {
  const line = recordOf(socket);
  socket.once('connect', () => {
    line.remoteAddress = socket.remoteAddress;
    line.stage = secure ? 'handshake' : 'ready';
  });
  if (secure) {
    socket.once('secureConnect', () => {
      line.certificateSha256 = fingerprint(socket as TLSSocket);
      line.stage = 'ready';
    });
  }
  return line;
}

function recordOf(socket: Socket): Line {
  return { socket, stage: 'connecting', calls: 0, remoteAddress: undefined, certificateSha256: undefined };
}

/** Calls back once: with nothing when the line is ready, else with why it will never be. */
export function whenReady({ socket }: Line, secure: boolean, done: (error?: Error) => void): void {
  let settled = false;
  function settle(error?: Error): void {
    if (settled) return;
    settled = true;
    done(error);
  }
  socket.once(secure ? 'secureConnect' : 'connect', () => settle());
  socket.once('error', settle);
  socket.once('close', () => settle(new CallError('aborted', 'the call was given up')));
  // Whoever uses the line listens too; until then, and between two of them, an error must not end the process.
  socket.on('error', () => {});
}

function deadLine(error: Error): Line {
  const socket = new Socket();
  socket.destroy(error);
  return recordOf(socket);
}

function fingerprint(socket: TLSSocket): string | undefined {
  return socket.getPeerX509Certificate()?.fingerprint256.replaceAll(':', '').toLowerCase();
}

/**
 * A `lookup` for sockets that gives only addresses that may be connected to. Calls for a name that is being resolved
 * already share the answer: resolving takes one of few threads, and a name that hangs must not take them all.
 */
function createGuardedLookup(guard: AddressGuard, onListed: OnListedAddress): LookupFunction {
  const waiting = new Map<
    string,
    ((error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void)[]
  >();

  return (host, options, callback) => {
    function answer(error: NodeJS.ErrnoException | null, addresses: LookupAddress[]): void {
      if (error !== null) return callback(error, [], 0);
      const allowed = addresses.filter(({ address }) => admit(guard, address, onListed));
      const [first] = allowed;
      if (first === undefined) return callback(notAllowed(host), [], 0);
      // Node asks for all of them when it may try several, else for one.
      if (options.all === true) callback(null, allowed);
      else callback(null, first.address, first.family);
    }
    const others = waiting.get(host);
    if (others !== undefined) {
      others.push(answer);
      return;
    }
    const all = [answer];
    waiting.set(host, all);
    lookupName(host, { all: true }, (error, addresses) => {
      waiting.delete(host);
      for (const one of all) one(error, addresses);
    });
  };
}

function admit(guard: AddressGuard, address: string, onListed: OnListedAddress): boolean {
  const verdict = guard.verdict(address);
  if (verdict === 'listed') onListed(address);
  return verdict !== undefined;
}

function notAllowed(host: string): CallError {
  return new CallError('address_not_allowed', `${host} is not, or does not resolve to, a public address`);
}

/** Reading certificates is costly; what endpoints have of their own is read once. */
function createContexts(): (tls: CallTls | undefined) => SecureContext | CallError {
  const common = createSecureContext({ minVersion: MIN_TLS });
  const own = new Map<string, SecureContext | CallError>();
  return (tls) => {
    if (tls === undefined) return common;
    const key = JSON.stringify(tls);
    let context = own.get(key);
    if (context === undefined) {
      context = readContext(tls);
      if (own.size >= MAX_REMEMBERED) own.clear();
      own.set(key, context);
    }
    return context;
  };
}

/**
 * Reads what an endpoint has of its own, as OpenSSL wants it; an error says that it cannot be used. That is a fault of
 * this side: it was read before it was stored.
 */
export function readContext(tls: CallTls): SecureContext | CallError {
  try {
    // Node passes over an authority that it cannot read: every server would then seem to be at fault.
    if (tls.ca !== undefined) new X509Certificate(tls.ca);
    return createSecureContext({ minVersion: MIN_TLS, ...tls });
  } catch (error) {
    const code = codeOf(error) ?? 'ERR_INVALID_PEM';
    return new CallError('local_failure', `the endpoint's own certificates or key cannot be used (${code})`);
  }
}
