import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { namesOf } from '../../src/broker/topology.ts';
import { createKey } from '../../src/pipeline/operate/keys.ts';
import { issueCertificate } from '../egress/certificates.ts';
import { type AmqpClient, openAmqpClient } from '../support/amqp-client.ts';
import { type RunningCli, runCli, startCli } from '../support/cli.ts';
import { drainQueue, openDestination, QUICK } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';

/** Words that must not be seen anywhere; each says where it was planted. */
const word = (place: string): string => `CANARY${place}${randomBytes(6).toString('hex')}`;
const planted = {
  path: word('path'),
  query: word('query'),
  header: word('header'),
  payload: word('payload'),
  userinfo: word('userinfo'),
  databasePassword: word('database'),
  rowOfDatabase: word('row'),
  wrongKey: word('wrongkey'),
};
const secretBytes = randomBytes(32);
const masterKey = randomBytes(32).toString('base64');
const own = issueCertificate({ name: 'canary' });
const ONCE = { kind: 'schedule', retry_schedule: [0], max_attempts: 1 };

let product: TestProduct;
let running: RunningCli;
let client: AmqpClient;
let url: string;
let apiKey: string;
/** Everything that anybody could read, by where it was read. */
const seen = new Map<string, string>();

beforeAll(async () => {
  product = await openTestProduct({
    env: { ...QUICK, DUEPOST_MASTER_KEY: masterKey, DUEPOST_LOG_LEVEL: 'debug', DUEPOST_LOG_FORMAT: 'json' },
  });
  const databaseUrl = new URL(product.database.url);
  databaseUrl.password = planted.databasePassword;
  running = startCli(['start'], { ...product.env, DUEPOST_DATABASE_URL: databaseUrl.href });
  await running.says('"event":"started"');
  url = /at (http\S+)/.exec(await running.says(' at http'))?.[1] ?? '';
  apiKey = (await createKey(product.parts.pool, { name: 'canary', scopes: ['admin'] }, { actor: 'test' }))
    .key;
  client = await openAmqpClient(product);
});

afterAll(async () => {
  await client.close();
  running.child.kill('SIGTERM');
  await running.ended;
  await product.close();
});

async function call(
  method: string,
  path: string,
  body?: unknown,
  key = apiKey,
): Promise<{ status: number; text: string }> {
  const answer = await fetch(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  return { status: answer.status, text: await answer.text() };
}

/** Calls what must be refused, and keeps the refusal. */
async function refused(what: string, statusClass: 4 | 5, ...request: Parameters<typeof call>): Promise<void> {
  const answer = await call(...request);
  expect([what, Math.floor(answer.status / 100)]).toEqual([what, statusClass]);
  seen.set(`the refusal: ${what}`, answer.text);
}

/** Makes an endpoint whose URL, headers and secret must stay unseen, and delivers to it. */
async function deliverTo(name: string, base: string): Promise<void> {
  const created = await call('POST', '/v1/endpoints', {
    name,
    url: `${base}/${planted.path}?token=${planted.query}`,
    headers: { 'X-Api-Key': planted.header },
    secret: `whsec_${secretBytes.toString('base64')}`,
    ...(base.startsWith('https:') ? { tls: { certificate: own.cert, key: own.key } } : {}),
    policy: ONCE,
  });
  seen.set(`the certificates of ${name}`, JSON.stringify(JSON.parse(created.text).tls));
  expect([name, created.status]).toEqual([name, 201]);
  const published = await call('POST', '/v1/events', {
    type: 'order.created',
    endpoint: name,
    idempotency_key: name,
    payload: { note: planted.payload },
  });
  expect([name, published.status]).toEqual([name, 202]);
  await until(`${name} to end`, async () => {
    const { rows } = await product.parts.pool.query(
      `select a.error, a.detail from attempt a join delivery d using (delivery_id)
        where d.idempotency_key like $1 and d.due_at is null`,
      [`${name}:%`],
    );
    if (rows.length === 0) return undefined;
    seen.set(`the error of ${name}`, JSON.stringify(rows));
    return true;
  });
}

test('what is secret is seen nowhere, whatever goes wrong', async () => {
  const { receiver } = await openDestination(product, { answers: [200, 500, 302, 404] });
  const base = `http://127.0.0.1:${receiver.port}`;
  for (const name of ['good', 'failing', 'redirecting', 'missing']) await deliverTo(name, base);
  await deliverTo('no-such-name', 'http://nowhere.invalid');
  await deliverTo('no-tls', `https://127.0.0.1:${receiver.port}`);
  const gone = await openDestination(product);
  await gone.receiver.close();
  await deliverTo('nobody-listens', `http://127.0.0.1:${gone.receiver.port}`);

  const events = '/v1/events';
  await refused('a user in the URL', 4, 'POST', '/v1/endpoints', {
    name: 'userinfo',
    url: `https://someone:${planted.userinfo}@example.com/${planted.path}`,
  });
  await refused('a URL that is not allowed', 4, 'POST', '/v1/endpoints', {
    name: 'inward',
    url: `http://169.254.169.254/${planted.path}?token=${planted.query}`,
  });
  await refused('a secret that is none', 4, 'POST', '/v1/endpoints', {
    name: 'short',
    url: 'https://example.com/',
    secret: `whsec_${planted.wrongKey}`,
  });
  const withTls = (tls: object) => ({ name: 'tls', url: 'https://example.com/', tls });
  const other = issueCertificate({ name: 'other' });
  await refused(
    'a key of another certificate',
    4,
    'POST',
    '/v1/endpoints',
    withTls({ certificate: other.cert, key: own.key }),
  );
  await refused('a key in the wrong place', 4, 'PATCH', '/v1/endpoints/no-tls', {
    tls: { ca: own.key, key: own.key.slice(0, 150) },
  });
  await refused('a body that is no JSON', 4, 'POST', events, `{"payload": "${planted.payload}`);
  await refused('a body with a wrong member', 4, 'POST', events, { type: 7, payload: planted.payload });
  await refused('a key that is none', 4, 'GET', '/v1/endpoints', undefined, planted.wrongKey);
  const command = { v: 1, type: 7, payload: planted.payload, idempotency_key: 'bad' };
  seen.set(
    'the answer to a command',
    JSON.stringify(await client.call('event.publish', Buffer.from(JSON.stringify(command)))),
  );

  // The database names the row that it refuses.
  await product.database.pool.query(`
    create function refuse() returns trigger language plpgsql as $$
    begin
      raise exception 'refused' using errcode = '23514', detail = 'Failing row contains (${planted.rowOfDatabase})';
    end $$;
    create trigger refuse before insert on event for each row execute function refuse();`);
  await refused('a fault of the database', 5, 'POST', events, {
    type: 'a',
    payload: planted.payload,
    idempotency_key: 'x',
  });
  await product.database.pool.query('drop function refuse cascade');

  const { rows: operations } = await product.parts.pool.query(
    `select detail -> 'tls' as tls from operation where event = 'endpoint.created'`,
  );
  seen.set('the record of operations', JSON.stringify(operations));
  seen.set('metrics', (await call('GET', '/metrics')).text);
  seen.set('readiness', (await call('GET', '/readyz')).text);
  seen.set('the process title', readFileSync(`/proc/${running.pid}/cmdline`, 'utf8'));
  const names = namesOf(product.config.broker.prefix);
  for (const queue of [names.deliveries, names.deadLetters, names.poison, names.unrouted, ...names.tiers]) {
    const messages = await drainQueue(product, queue);
    seen.set(
      `queue ${queue}`,
      messages.map((m) => `${JSON.stringify(m.properties)} ${m.content.toString()}`).join('\n'),
    );
  }
  const databaseUrl = new URL(product.database.url);
  databaseUrl.password = planted.databasePassword;
  const shown = await runCli(['config'], { ...product.env, DUEPOST_DATABASE_URL: databaseUrl.href });
  seen.set('duepost config', shown.stdout + shown.stderr);
  const elsewhere = await runCli(['endpoint', 'list'], {
    ...product.env,
    DUEPOST_DATABASE_URL: `postgres://someone:${planted.databasePassword}@127.0.0.1:1/x`,
  });
  seen.set('a command without a database', elsewhere.stdout + elsewhere.stderr);
  const refusedByBroker = new URL(product.broker.config.url);
  refusedByBroker.username = 'nobody';
  refusedByBroker.password = planted.databasePassword;
  const unwelcome = await runCli(['start'], { ...product.env, DUEPOST_AMQP_URL: refusedByBroker.href });
  expect(unwelcome.code).toBe(1);
  seen.set('a start that the broker refuses', unwelcome.stdout + unwelcome.stderr);
  await receiver.close();

  running.child.kill('SIGTERM');
  const { stderr, stdout } = await running.ended;
  seen.set('the log', stderr + stdout);
  expect(seen.get('the log')).toContain('"event":"attempt"');
  const secrets = {
    ...planted,
    masterKey,
    apiKey,
    secret: secretBytes.toString('base64'),
    secretHex: secretBytes.toString('hex'),
    clientKey: own.key.split('\n')[1] as string,
  };
  const leaks = [...seen].flatMap(([where, text]) =>
    Object.entries(secrets)
      .filter(([, secret]) => text.includes(secret))
      .map(([what]) => `${what} in ${where}`),
  );
  expect(leaks).toEqual([]);
});
