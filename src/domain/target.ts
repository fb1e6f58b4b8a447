import { isIP } from 'node:net';
import { type Refusal, refuseField } from './refusal.ts';

/** What an endpoint's URL is judged by. */
export interface TargetRules {
  /** Whether plain `http://` may be called. */
  readonly allowHttp: boolean;
  /** Whether this literal address, v4 or v6 without brackets, may be connected to. */
  readonly isAllowedAddress: (address: string) => boolean;
}

/** Why a URL is no target; the message names no path and no query, since both may hold secrets. */
export interface TargetFault {
  readonly reason: 'url_not_allowed' | 'address_not_allowed';
  readonly message: string;
}

const MAX_URL_LENGTH = 2048;

/** Ports that speak something else, on which a request could be taken for commands (WHATWG Fetch, "port blocking"). */
const BLOCKED_PORTS = new Set([
  0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104,
  109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515,
  526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049,
  3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
]);

/**
 * The URL an endpoint may have, normalised: the host is the one that would be connected to, whatever its notation.
 *
 * Names are not resolved here; what they resolve to is judged again at every connection.
 *
 * @throws Refusal `url_not_allowed` at `/url`
 */
export function parseTarget(url: string, rules: TargetRules): URL {
  const target = judgeTarget(url, rules);
  if (target instanceof URL) return target;
  throw refuseUrl(target);
}

/** The URL, or why it may not be called. */
export function judgeTarget(url: string, rules: TargetRules): URL | TargetFault {
  if (url.length > MAX_URL_LENGTH) return fault(`is longer than ${MAX_URL_LENGTH} characters`);
  // The URL parser drops tabs and line ends and trims spaces: what would be called is not what is read.
  if (/[\p{Cc}\s]/u.test(url)) return fault('contains white space or control characters');
  if (!URL.canParse(url)) return fault('is not an absolute URL');
  const target = new URL(url);
  if (target.protocol !== 'https:' && target.protocol !== 'http:') return fault('must begin with https://');
  if (target.protocol === 'http:' && !rules.allowHttp) {
    return fault('must begin with https://; plain http is not allowed here');
  }
  if (target.username !== '' || target.password !== '')
    return fault('must not contain a user name or password');
  if (target.hash !== '') return fault('must not contain a fragment');
  if (target.port !== '' && BLOCKED_PORTS.has(Number(target.port))) {
    return fault(`uses port ${target.port}, which is reserved for another protocol`);
  }
  return judgeHost(target, rules);
}

function judgeHost(target: URL, rules: TargetRules): URL | TargetFault {
  const host = literalHost(target.hostname);
  if (isIP(host) !== 0) return rules.isAllowedAddress(host) ? target : addressFault(host);
  // RFC 6761: these names are loopback wherever they are resolved.
  if (/^(.+\.)?localhost\.?$/.test(host)) {
    return rules.isAllowedAddress('127.0.0.1') || rules.isAllowedAddress('::1') ? target : addressFault(host);
  }
  return target;
}

/** The host as an address is written outside a URL: without the brackets of v6. */
export function literalHost(hostname: string): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}

function addressFault(host: string): TargetFault {
  return { reason: 'address_not_allowed', message: `points to ${host}, which is not a public address` };
}

function fault(message: string): TargetFault {
  return { reason: 'url_not_allowed', message };
}

function refuseUrl(target: TargetFault): Refusal {
  return refuseField('/url', `url ${target.message}`, 'url_not_allowed');
}
