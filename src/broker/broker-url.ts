/** A broker URL in parts, decoded. */
export interface BrokerAddress {
  readonly protocol: 'amqp' | 'amqps';
  readonly hostname: string;
  readonly port: number;
  readonly username: string;
  readonly password: string;
  readonly vhost: string;
}

const REMEDY =
  'percent-encode special characters in user name, password and virtual host (@ as %40, / as %2F, # as %23, ? as %3F, % as %25)';

/**
 * Reads `amqp[s]://user:password@host:port/vhost` (https://www.rabbitmq.com/docs/uri-spec).
 *
 * Without a path the virtual host is `/`. Throws an Error that never repeats the URL; a password whose special
 * characters were left as they are would otherwise name another host.
 */
export function parseBrokerUrl(text: string): BrokerAddress {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) throw new Error(`the broker URL is not a URL: ${REMEDY}`);
  const protocol = url.protocol.slice(0, -1);
  if (protocol !== 'amqp' && protocol !== 'amqps')
    throw new Error('the broker URL must start with amqp:// or amqps://');
  const [, authority = '', rest = ''] = /^[a-z]+:\/\/([^/?#]*)(.*)$/is.exec(text) ?? [];
  if (authority.split('@').length > 2 || /[@#]/.test(rest))
    throw new Error(`the broker URL is ambiguous: ${REMEDY}`);
  if (url.hostname === '') throw new Error('the broker URL names no host');
  const hasUser = url.username !== '' || url.password !== '';
  return {
    protocol,
    hostname: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port) || (protocol === 'amqp' ? 5672 : 5671),
    username: hasUser ? decode(url.username) : 'guest',
    password: hasUser ? decode(url.password) : 'guest',
    vhost: decode(url.pathname.slice(1)) || '/',
  };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error(`the broker URL is not encoded properly: ${REMEDY}`);
  }
}
