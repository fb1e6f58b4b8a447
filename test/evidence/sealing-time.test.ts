import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundleText } from '../../src/domain/audit/bundle.ts';
import { verifyBundle } from '../../src/domain/audit/verify-bundle.ts';
import { exportEvidence } from '../../src/pipeline/evidence/export.ts';
import { openSimulation, type Simulation } from './simulation.ts';
import { checkSignature, linesOf, sealAll, signer, verifyAll } from './support.ts';

let simulation: Simulation;

beforeAll(async () => {
  simulation = await openSimulation();
});

afterAll(() => simulation.close());

/** A reminder that was delivered; its deadline is a day after it was due, at once. */
async function remindAndDeliver(contractRef: string): Promise<string> {
  const id = await simulation.remind({ contractRef });
  await simulation.deliver(id);
  return id;
}

/** What a signed file of a delivery says. */
async function told(deliveryId: string): Promise<string> {
  const bundle = await exportEvidence({ deliveryId }, { pool: simulation.pool, actor: 'test', signer });
  const report = verifyBundle(Buffer.from(bundleText(bundle)), checkSignature);
  expect(report.findings).toEqual([]);
  return report.proof.deliveries.flatMap((d) => d.says).join('\n');
}

test('is on record before its deadline what was sealed before it', async () => {
  await simulation.travelTo(new Date('2025-03-18T12:00:00Z'));
  const id = await remindAndDeliver('pol-1');
  await simulation.travelTo(new Date('2025-03-18T12:01:00Z'));
  await sealAll(simulation.pool);

  expect(await verifyAll(simulation.pool)).toMatchObject({ ok: true, late: { found: 0 } });
  expect(await told(id)).toMatch(
    /On record before the deadline: seal 1 was made at 2025-03-18T12:01:00.000Z, 23 hours before it\./,
  );
  expect(await told(id)).not.toContain('on record only since');
});

test('says of what was sealed late since when it is on record, which is no fault by itself', async () => {
  await simulation.travelTo(new Date('2025-03-19T12:00:00Z'));
  const id = await remindAndDeliver('pol-2');
  await simulation.travelTo(new Date('2025-03-22T12:00:00Z'));
  await sealAll(simulation.pool);

  const report = await verifyAll(simulation.pool);
  // When it is due, and how it ended.
  expect(report).toMatchObject({ ok: true, late: { found: 2 } });
  expect(report.late.first[1]).toEqual({
    where: `trail entry 2 of ${id}`,
    what: 'sealed 3 days after it is said to have happened (2025-03-19T12:00:00.000Z): on record only since 2025-03-22T12:00:00.000Z',
  });
  const says = await told(id);
  expect(says).toContain(
    'Sealed 3 days after it ended (2025-03-19T12:00:00.000Z): on record only since 2025-03-22T12:00:00.000Z',
  );
  expect(says).toMatch(/, in time: before the deadline\./);
  expect(says).toContain(
    'On record only after the deadline: seal 2 was made at 2025-03-22T12:00:00.000Z, 2 days after it.',
  );
  expect(says).not.toContain('On record before the deadline');
});

test('finds what was written afterwards and dated back, although it is sealed', async () => {
  await simulation.travelTo(new Date('2025-03-15T12:00:00Z'));
  const id = await remindAndDeliver('pol-3');
  await simulation.pool.query(
    "insert into operation (subject_id, event, actor, detail) values ('ep_1', 'endpoint.changed', 'test', '{}')",
  );
  await simulation.travelTo(new Date('2025-03-22T12:01:00Z'));
  await sealAll(simulation.pool);

  const report = await verifyAll(simulation.pool);
  expect(report.ok).toBe(false);
  expect(linesOf(report).sort()).toEqual([
    expect.stringMatching(/^operation \d+: it is said to be of 2025-03-15/),
    `trail entry 1 of ${id}: it is said to be of 2025-03-15T12:00:00.000Z, and seal 2 of 2025-03-22T12:00:00.000Z, which had room for everything, does not hold it: it was written afterwards, or its time was moved`,
    expect.stringContaining(`trail entry 2 of ${id}: it is said to be of 2025-03-15`),
  ]);
});
