// What evidence costs the hot path, and what sealing, checking and exporting take. Makes a database of its own and drops it again.
// After `npm run build`: DUEPOST_DATABASE_URL=postgres://… node scripts/measure-evidence.mjs

import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto';
import pg from 'pg';
import { createSignatureCheck, createSigner, publicKeyOf } from '../dist/domain/audit/seal.js';
import { createId } from '../dist/domain/ids.js';
import { exportEvidence } from '../dist/pipeline/evidence/export.js';
import { createSeal, sealWaiting } from '../dist/pipeline/evidence/seal.js';
import { verifyStore } from '../dist/pipeline/evidence/verify-store.js';
import { claimDeliveries } from '../dist/store/claims.js';
import { insertEndpoint } from '../dist/store/endpoints.js';
import { findLastSeal, insertSeal } from '../dist/store/evidence/seals.js';
import { migrate } from '../dist/store/migrate.js';
import { inTransaction, openPool } from '../dist/store/pool.js';
import { settleAttempts } from '../dist/store/settle.js';
import { insertEvents } from '../dist/store/sources.js';

const BATCH = 250;
const BATCHES = 12;
const ROUNDS = 5;
/** Seals in the store from which a delivery is exported. */
const HISTORIES = [1_000, 10_000, 100_000];
const EXPORTS = 21;

const server = process.env.DUEPOST_DATABASE_URL ?? '';
const name = `measure_${randomBytes(4).toString('hex')}`;
const url = new URL(server);
url.pathname = `/${name}`;
const quiet = { info() {}, warn() {}, error() {}, debug() {}, fault() {} };
const admin = new pg.Client({ connectionString: server });
await admin.connect();
await admin.query(`create database ${name}`);
const config = { url: url.href, poolSize: 4, statementTimeoutMs: 600_000 };
await migrate(config, quiet);
const pool = openPool(config, quiet);
const newId = (prefix) => createId(prefix, Date.now(), randomBytes(10));
const endpointId = newId('ep');
await insertEndpoint(pool, {
  endpointId,
  name: 'sink',
  url: 'https://sink.example/',
  mode: 'live',
  eventTypes: ['*'],
  policy: undefined,
  maxInFlight: undefined,
  headers: {},
});

/** The settling statement with parts of it left out: what is then not there is what it costs. */
const VARIANTS = {
  'all of it': (text) => text,
  'without the queue of what is to be sealed': (text) => text,
  'without audit record': (text) => text.replace(/insert into audit_record \([^)]*\)/, ''),
  'without audit record and trail entry': (text) =>
    text.replace(/insert into audit_record \([^)]*\)/, '').replace(/insert into trail \([^)]*\)/, ''),
  'without audit record, trail entry and its hash': (text) =>
    text
      .replace(/insert into audit_record \([^)]*\)/, '')
      .replace(/insert into trail \([^)]*\)/, '')
      .replace(/trail_hash\([^\n]*\)/, 'd.trail_sha256'),
};

async function prepare() {
  const ids = [];
  const key = randomBytes(8).toString('hex');
  const bytes = Buffer.from(JSON.stringify({ key, data: 'x'.repeat(400) }));
  const sha256 = createHash('sha256').update(bytes).digest();
  const events = Array.from({ length: BATCH }, (_, i) => {
    const deliveryId = newId('dlv');
    ids.push(deliveryId);
    return {
      eventId: newId('evt'),
      idempotencyKey: `${key}-${i}`,
      contentSha256: sha256,
      type: 'order.created',
      answer: [{ delivery_id: deliveryId, endpoint_id: endpointId, state: 'due' }],
      body: { bytes, sha256, dataOffset: 0 },
      deliveries: [
        {
          deliveryId,
          endpointId,
          idempotencyKey: `${key}-${i}:${endpointId}`,
          dueAt: new Date(),
          held: false,
        },
      ],
      actor: 'measure',
      trail: JSON.stringify({ event_id: 'x', type: 'order.created', idempotency_key: `${key}-${i}` }),
    };
  });
  await insertEvents(pool, events);
  await claimDeliveries(pool, {
    wakeUps: ids.map((deliveryId) => ({ deliveryId, attempt: 1 })),
    leaseMs: 600_000,
    timeoutMs: 10_000,
    holder: 'measure',
    maxPerEndpoint: 10_000,
    inHand: new Map(),
    taken: new Map(),
  });
  return ids;
}

const trail = JSON.stringify({
  attempt: 1,
  cycle: 1,
  request_headers: 'x'.repeat(600),
  response: 'y'.repeat(300),
});
const settlementOf = (deliveryId) => ({
  deliveryId,
  attempt: 1,
  revision: 1,
  decision: 'deliver',
  outcome: 'delivered',
  endpointFailed: false,
  gone: false,
  handedBack: false,
  retryAfterClamped: false,
  startedAgoMs: 5,
  finishedAgoMs: 1,
  durationMs: 4,
  status: 200,
  trail,
});

async function measure(variant) {
  const edit = VARIANTS[variant];
  const through = {
    query: (query) =>
      pool.query({ ...query, name: `${query.name} ${variant}`.slice(0, 60), text: edit(query.text) }),
  };
  const batches = [];
  for (let i = 0; i < BATCHES; i += 1) batches.push(await prepare());
  const toggle = (on) =>
    pool.query(`alter table audit_record ${on ? 'enable' : 'disable'} trigger audit_record_queued`);
  const queue = !variant.includes('queue');
  await toggle(queue);
  const wal = async () => (await pool.query("select pg_current_wal_insert_lsn() - '0/0' as at")).rows[0].at;
  const walBefore = await wal();
  const startedAt = performance.now();
  for (const ids of batches)
    await settleAttempts(through, ids.map(settlementOf), { holder: 'measure', timeoutMs: 10_000 });
  const tookMs = performance.now() - startedAt;
  const walBytes = (await wal()) - walBefore;
  await toggle(true);
  return { microseconds: (1_000 * tookMs) / (BATCH * BATCHES), walBytes: walBytes / (BATCH * BATCHES) };
}

/** Goes on with seals of one leaf each until there are so many. */
async function sealUpTo(size, signer) {
  await inTransaction(pool, async (db) => {
    for (let last = await findLastSeal(db); last.number < size; ) {
      const parts = [{ kind: 'event', month: '2027-03', leaves: 1 }];
      last = createSeal(
        last,
        { sealedAt: new Date().toISOString(), hashes: [randomBytes(32)], parts },
        signer,
      );
      await insertSeal(db, last, []);
    }
  });
}

async function measureExport(deliveryId) {
  const times = [];
  for (let i = 0; i < EXPORTS; i += 1) {
    const startedAt = performance.now();
    await exportEvidence({ deliveryId }, { pool, actor: 'measure' });
    times.push(performance.now() - startedAt);
  }
  return median(times);
}

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

try {
  const results = new Map(Object.keys(VARIANTS).map((v) => [v, []]));
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const variant of Object.keys(VARIANTS)) {
      const result = await measure(variant);
      // The first round warms up.
      if (round > 0) results.get(variant).push(result);
    }
  }
  console.log(`settling in batches of ${BATCH}, median of ${ROUNDS} rounds of ${BATCHES} batches`);
  for (const [variant, list] of results) {
    const us = median(list.map((r) => r.microseconds)).toFixed(0);
    const wal = median(list.map((r) => r.walBytes)).toFixed(0);
    console.log(
      `  ${variant.padEnd(52)} ${us.padStart(5)} µs and ${wal.padStart(5)} bytes of WAL per delivery`,
    );
  }
  const { privateKey } = generateKeyPairSync('ed25519');
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' });
  const waiting = (await pool.query('select count(*)::int as n from unsealed')).rows[0].n;
  let startedAt = performance.now();
  const signer = createSigner(pem);
  const seals = await sealWaiting({ pool, signer, log: quiet });
  let seconds = (performance.now() - startedAt) / 1_000;
  console.log(
    `sealing: ${waiting} in ${seconds.toFixed(1)} s, ${seals.length} seals, ${Math.round(waiting / seconds)} per second`,
  );
  startedAt = performance.now();
  const report = await verifyStore({ pool, checkSignature: createSignatureCheck([publicKeyOf(pem)]) });
  seconds = (performance.now() - startedAt) / 1_000;
  console.log(
    `checking the store: ${report.deliveries} deliveries in ${seconds.toFixed(1)} s, ${Math.round(report.deliveries / seconds)} per second`,
  );
  const sealed = (
    await pool.query(
      "select subject_id from seal_leaf where kind = 'event' order by seal_number desc limit 1",
    )
  ).rows[0].subject_id;
  for (const history of HISTORIES) {
    await sealUpTo(history, signer);
    const ms = await measureExport(sealed);
    console.log(
      `exporting a delivery from a store of ${history} seals: ${ms.toFixed(0)} ms, median of ${EXPORTS}`,
    );
  }
} finally {
  await pool.end();
  await admin.query(`drop database ${name} with (force)`);
  await admin.end();
}
