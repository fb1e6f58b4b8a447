// Servers that the environment names: somebody's own, or ours in a shell that has evaluated `services up`.

import { accepts } from './ports.mjs';
import { say } from './report.mjs';
import { readState } from './state.mjs';

const variables = {
  postgres: { url: 'DUEPOST_DATABASE_URL', others: [] },
  rabbitmq: { url: 'DUEPOST_AMQP_URL', others: ['DUEPOST_MANAGEMENT_URL'] },
};

/** What `services up` prints, and nobody else is likely to choose. */
const handedOut = {
  postgres: /^postgres:\/\/duepost(?::duepost)?@127\.0\.0\.1:(2\d{4})\/duepost$/,
  rabbitmq: /^amqp:\/\/(?:guest:guest|duepost:duepost)@127\.0\.0\.1:(2\d{4})$/,
};

/** The variable that names this server, if it is set. */
export function findGiven(name) {
  const { url } = variables[name];
  return (process.env[url] ?? '') === '' ? undefined : url;
}

/**
 * Forgets a variable that names our server, or one of ours that has stopped: it is ours to run.
 *
 * @returns the URL that was forgotten; undefined: none was
 */
export async function takeBack(name) {
  const given = findGiven(name);
  const url = process.env[given] ?? '';
  const port = handedOut[name].exec(url)?.[1];
  if (port === undefined) return undefined;
  if (readState()[name]?.url !== url) {
    // That of another checkout, and running.
    if (await accepts(Number(port))) return undefined;
    say(name, `${given} names a private server that has stopped (port ${port})`);
  }
  for (const variable of [given, ...variables[name].others]) delete process.env[variable];
  return url;
}
