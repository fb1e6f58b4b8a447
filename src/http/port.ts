import { createServer } from 'node:net';
import type { Config } from '../runtime/config.ts';

/** What is wrong with where to listen, by the code of the system's error. */
const REASONS: Readonly<Record<string, (http: Config['http']) => string>> = {
  EADDRINUSE: ({ host, port }) =>
    `port ${port} of ${host} is taken already: set DUEPOST_HTTP_PORT to another, or to 0 for any that is free`,
  EACCES: ({ port }) => `port ${port} is for privileged users: set DUEPOST_HTTP_PORT to one above 1023`,
  EADDRNOTAVAIL: ({ host }) => `this host has no address ${host}: set DUEPOST_HTTP_HOST to one it has`,
  ENOTFOUND: ({ host }) => `there is no host ${host}: set DUEPOST_HTTP_HOST to an address of this one`,
};

/** Throws, naming port and setting, unless a server could listen there now. */
export async function requireFreePort(http: Config['http']): Promise<void> {
  const probe = createServer();
  await new Promise<void>((resolve, reject) => {
    probe.once('error', (error) => reject(explainListening(error, http)));
    probe.listen({ host: http.host, port: http.port, exclusive: true }, () => probe.close(() => resolve()));
  });
}

/** The same error, saying what to set. */
export function explainListening(error: NodeJS.ErrnoException, http: Config['http']): Error {
  const reason = REASONS[error.code ?? ''];
  if (reason !== undefined) error.message = reason(http);
  return error;
}
