import { afterAll, beforeAll, expect, test } from 'vitest';
import { type CliResult, type RunningCli, startCli } from '../support/cli.ts';
import { type Destination, openDestination, publishTo, QUICK } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { until } from '../support/until.ts';
import { findViolations } from './support/invariants.ts';

const WORKERS = 3;
/** Before, between and after the restarts. */
const PER_STEP = 100;
let product: TestProduct;
let destination: Destination;

beforeAll(async () => {
  product = await openTestProduct({
    env: { ...QUICK, DUEPOST_EGRESS_TIMEOUT_MS: '5000', DUEPOST_CLAIM_LEASE_MS: '7000' },
  });
  destination = await openDestination(product, { delayMs: 20 });
});

afterAll(async () => {
  await destination.receiver.close();
  await product.close();
});

async function startWorker(): Promise<RunningCli> {
  const worker = startCli(['start', '--roles', 'worker,reconciler'], {
    ...product.env,
    DUEPOST_LOG_FORMAT: 'json',
  });
  await worker.says('"event":"started"');
  return worker;
}

interface Line {
  readonly event: string;
  readonly delivery_id?: string;
  readonly attempt?: number;
}

/** The log of a process, without the line for people that says where it listens; every line of it must be whole. */
function readLog({ stderr }: CliResult): Line[] {
  return stderr
    .trim()
    .split('\n')
    .filter((line) => !line.startsWith('duepost: '))
    .map((line) => JSON.parse(line) as Line);
}

test('restarting three workers one after the other under load loses nothing, repeats nothing and logs everything', async () => {
  const workers = await Promise.all(Array.from({ length: WORKERS }, startWorker));
  const publish = (): Promise<unknown> =>
    Promise.all(Array.from({ length: PER_STEP }, () => publishTo(product, destination)));
  await publish();
  const ended: CliResult[] = [];
  for (const [n, worker] of workers.entries()) {
    const [result] = await Promise.all([
      (async () => {
        worker.child.kill('SIGTERM');
        return worker.ended;
      })(),
      publish(),
    ]);
    ended.push(result);
    workers[n] = await startWorker();
  }
  await publish();
  const total = PER_STEP * (WORKERS + 2);
  await until('everything to be delivered', async () => {
    const { rows } = await product.parts.pool.query(
      `select count(*)::int as n from delivery where state = 'delivered'`,
    );
    return rows[0].n === total;
  });
  for (const worker of workers) {
    worker.child.kill('SIGTERM');
    ended.push(await worker.ended);
  }

  expect(ended.map((result) => result.code)).toEqual(ended.map(() => 0));
  expect(destination.receiver.calls()).toHaveLength(total);
  expect(destination.receiver.effects()).toHaveLength(total);
  const timeoutMs = product.config.egress.timeoutMs;
  expect(await findViolations(product.parts.pool, { receivers: [destination.receiver], timeoutMs })).toEqual(
    [],
  );
  const logs = ended.map(readLog);
  expect(logs.map((log) => log.at(-1)?.event)).toEqual(logs.map(() => 'stopped'));
  const told = logs.flat().filter((line) => line.event === 'attempt');
  // A claim that was won as the worker stopped is given back without a call, and told of like any other attempt.
  const { rows } = await product.parts.pool.query('select delivery_id, attempt from attempt');
  const nameOf = (a: { delivery_id?: string; attempt?: number }): string => `${a.delivery_id} ${a.attempt}`;
  expect(told.map(nameOf).sort()).toEqual(rows.map(nameOf).sort());
});

test('of three calls at the stop, what ends in time is kept and what does not is another worker’s', async () => {
  const [quick, slow, never] = await Promise.all([
    openDestination(product, { delayMs: 600 }),
    openDestination(product, { delayMs: 20_000 }),
    openDestination(product, { answers: ['hang'] }),
  ]);
  const worker = startCli(['start', '--roles', 'worker'], {
    ...product.env,
    DUEPOST_EGRESS_TIMEOUT_MS: '60000',
    DUEPOST_CLAIM_LEASE_MS: '62000',
    DUEPOST_SHUTDOWN_MS: '4000',
    DUEPOST_LOG_FORMAT: 'json',
  });
  await worker.says('"event":"started"');
  const events = await Promise.all([quick, slow, never].map((to) => publishTo(product, to)));
  await until('three calls', async () => {
    const { rows } = await product.parts.pool.query(
      `select count(*)::int as n from delivery where state = 'in_flight'`,
    );
    return rows[0].n === 3;
  });
  worker.child.kill('SIGTERM');
  const { code } = await worker.ended;
  const { rows } = await product.parts.pool.query(
    `select d.state, a.outcome, a.error
       from delivery d join attempt a using (delivery_id)
      where delivery_id = any($1)
      order by array_position($1, delivery_id)`,
    [events.map((event) => event.deliveryId)],
  );
  expect({ code, rows }).toEqual({
    code: 0,
    rows: [
      { state: 'delivered', outcome: 'delivered', error: null },
      { state: 'due', outcome: 'unknown', error: 'aborted' },
      { state: 'due', outcome: 'unknown', error: 'aborted' },
    ],
  });
  await Promise.all([quick, slow, never].map(({ receiver }) => receiver.close()));
});
