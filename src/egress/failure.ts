import type { Line } from './connect.ts';
import { detail } from './evidence.ts';

export interface Failure {
  readonly error: string;
  readonly detail: string;
}

/** A call that ended for a reason of this side's. */
export class CallError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.name = 'CallError';
    this.code = code;
  }
}

/** This process or machine ran out of something: nobody else's fault. */
const LOCAL = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'ENOBUFS', 'EADDRNOTAVAIL']);

/** A call was given to a connection that this side had closed: a mistake of ours. */
const CLOSED_HERE = new Set(['UND_ERR_DESTROYED', 'UND_ERR_CLOSED']);

/** The line died; nothing is wrong with what was said on it. */
const RESETS = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED', 'ETIMEDOUT', 'UND_ERR_SOCKET']);

const INVALID = new Set([
  'UND_ERR_INVALID_ARG',
  'ERR_INVALID_CHAR',
  'ERR_INVALID_HTTP_TOKEN',
  'ERR_UNESCAPED_CHARACTERS',
]);

/**
 * Names what an error of a client or socket means. Its message is not used: clients put the whole URL into it, parsers
 * the bytes that were received.
 *
 * @returns undefined for an error that neither a network nor a receiver can cause
 */
export function classifyFailure(error: unknown, line: Line | undefined): Failure | undefined {
  const code = codeOf(error);
  if (error instanceof CallError) return { error: error.code, detail: detail(error.message) };
  if (code === undefined || CLOSED_HERE.has(code)) return undefined;
  if (INVALID.has(code)) return { error: 'invalid_request', detail: code };
  if (LOCAL.has(code))
    return { error: 'local_failure', detail: `this machine cannot open a connection (${code})` };
  if (line === undefined) return undefined;
  if (line.stage === 'connecting') return connectFailure(code, error);
  if (line.stage === 'handshake') return { error: `tls_failure:${code}`, detail: tlsDetail(code, error) };
  // With TLS 1.3 a server refuses a client certificate after the client's side of the handshake is over.
  if (/^ERR_SSL_|^ERR_TLS_/.test(code)) return { error: `tls_failure:${code}`, detail: code };
  if (RESETS.has(code) && !isBadAnswer(error)) {
    return { error: 'connection_reset', detail: `the connection ended before an answer came (${code})` };
  }
  return {
    error: 'protocol_error',
    detail: `the answer is not valid HTTP/1.1 (${isBadAnswer(error) ? 'bad response' : code})`,
  };
}

/**
 * What a time-out means depends on what was being waited for.
 *
 * @param line  undefined where all connections that may be open to the host were in use
 */
export function describeTimeout(line: Line | undefined, timeoutMs: number): Failure {
  if (line === undefined) {
    return { error: 'connection_limit', detail: `no connection became free within ${timeoutMs} ms` };
  }
  if (line.stage === 'ready') {
    return { error: 'headers_timeout', detail: `no complete response headers within ${timeoutMs} ms` };
  }
  const what = line.stage === 'handshake' ? 'TLS handshake' : 'connection';
  return { error: 'connect_timeout', detail: `no ${what} within ${timeoutMs} ms` };
}

/** Whether a line that had been used before was found dead, as when the server's keep-alive time ran out. */
export function isReset(error: unknown): boolean {
  const code = codeOf(error);
  return code !== undefined && RESETS.has(code) && !isBadAnswer(error);
}

function connectFailure(code: string, error: unknown): Failure {
  if (syscallOf(error) === 'getaddrinfo')
    return { error: 'dns_failure', detail: `the host name does not resolve (${code})` };
  if (code === 'ECONNREFUSED') return { error: 'connect_refused', detail: 'the host refuses the connection' };
  if (code === 'ETIMEDOUT' || code === 'ERR_SOCKET_CONNECTION_TIMEOUT') {
    return { error: 'connect_timeout', detail: 'the host does not take the connection' };
  }
  return { error: 'connect_failure', detail: code };
}

function tlsDetail(code: string, error: unknown): string {
  // The one message worth having: it names the host and the names the certificate is for.
  return code === 'ERR_TLS_CERT_ALTNAME_INVALID' && error instanceof Error ? detail(error.message) : code;
}

/** undici gives a response out of place, such as 101, the code of a lost socket. */
function isBadAnswer(error: unknown): boolean {
  return error instanceof Error && (error.message === 'bad response' || error.message === 'bad upgrade');
}

/** The code of an error, as far as it looks like one. */
export function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = 'code' in error ? error.code : undefined;
  // undici's parser errors come without one.
  if (code === undefined && error.name === 'HTTPParserError') return 'HPE_ERROR';
  // OpenSSL's reasons become codes as they are, such as ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE.
  return typeof code === 'string' && code !== ''
    ? code.replace(/[^A-Za-z0-9_]+/g, '_').slice(0, 80)
    : undefined;
}

function syscallOf(error: unknown): unknown {
  return error instanceof Error && 'syscall' in error ? error.syscall : undefined;
}
