/** A server is away, or takes nothing for now. */
export class Outage extends Error {}

const SYSTEM_CODE = /^(ECONN[A-Z]+|ENOTFOUND|EAI_[A-Z]+|E(TIMEDOUT|PIPE|HOSTUNREACH|NETUNREACH))$/;
// SQLSTATE: connection exceptions, refused users, missing databases, shutdowns and starts, too many connections.
const DATABASE_CODE = /^(08...|28...|3D000|57P0.|53300)$/;
// What the drivers say in words alone.
const DATABASE_WORDS =
  /^(Connection terminated|Connection ended|Client has encountered a connection error|Client was closed|timeout e|Query read timeout|Timeout)/i;
const BROKER_WORDS =
  /^((Channel|Connection|Server) (clos|end|connection clos)|Heartbeat timeout|Socket closed|Unexpected close)/i;

/**
 * Whether an error says that a server is away, refuses us or has cut us off: what matters then is which and why, and not
 * where in the program it was met.
 */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof Outage) return true;
  const { code } = error as { code?: unknown };
  if (typeof code === 'string') return SYSTEM_CODE.test(code) || DATABASE_CODE.test(code);
  return DATABASE_WORDS.test(error.message) || BROKER_WORDS.test(error.message);
}

/** What an error says, when it says it with its own message or with those of its parts. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // A connection that failed on every address has its reasons inside and an empty message.
  if (error instanceof AggregateError && error.message === '') return error.errors.map(reasonOf).join('; ');
  return error.message;
}
