import { expect, test } from 'vitest';
import { openTestBroker, targetOf } from '../support/broker.ts';
import { databaseTarget, openTestDatabase } from '../support/database.ts';
import { runSoak } from './soak/run.ts';

/** `FAULT_SEED=… npm test -- test/fault/random.test.ts` brings the same faults about again. */
const seed = Number(process.env['FAULT_SEED'] ?? Date.now() % 1_000_000_000);
const FAULTS = 10;

test('whatever happens by chance, nothing is lost and nothing is repeated', async () => {
  process.stdout.write(`FAULT_SEED=${seed}\n`);
  const database = await openTestDatabase({ migrated: false });
  const broker = await openTestBroker();
  const said: string[] = [];
  const report = await runSoak({
    seed,
    deliveries: 300,
    faults: FAULTS,
    client: seed % 2 === 0 ? 'node-fetch' : 'undici',
    databaseUrl: database.url,
    amqpUrl: broker.config.url,
    managementUrl: broker.config.managementUrl,
    prefix: broker.config.prefix,
    targets: { database: databaseTarget(), broker: targetOf(broker.config) },
    say: (line) => said.push(line),
  });
  await broker.close();
  await database.close();
  expect(report.violations, said.join('\n')).toEqual([]);
  expect(report.faults).toHaveLength(FAULTS);
  expect(report.effects).toBeGreaterThan(0);
}, 240_000);
