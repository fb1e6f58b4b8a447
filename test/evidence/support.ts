import { generateKeyPairSync } from 'node:crypto';
import { createSignatureCheck, createSigner, publicKeyOf } from '../../src/domain/audit/seal.ts';
import { sealWaiting } from '../../src/pipeline/evidence/seal.ts';
import { type StoreReport, verifyStore } from '../../src/pipeline/evidence/verify-store.ts';
import { moveDeliveries } from '../../src/store/moves.ts';
import type { Pool } from '../../src/store/pool.ts';
import { type Destination, openDestination, PERSISTENT, publishTo, QUICK } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { recordLog } from '../support/recorded-log.ts';
import { daysFromToday, dueNow } from '../support/reminders.ts';
import { until } from '../support/until.ts';

/** A key pair, as `duepost audit keygen` makes it. */
export function createKeys(): { readonly privateKey: string; readonly publicKey: string } {
  const { privateKey } = generateKeyPairSync('ed25519');
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  return { privateKey: pem, publicKey: publicKeyOf(pem) };
}

export const keys = createKeys();
export const signer = createSigner(keys.privateKey);
export const checkSignature = createSignatureCheck([keys.publicKey]);

export async function sealAll(pool: Pool): Promise<number[]> {
  const seals = await sealWaiting({ pool, signer, log: recordLog().log });
  return (seals ?? []).map((s) => s.number);
}

export function verifyAll(
  pool: Pool,
  more: Partial<Parameters<typeof verifyStore>[0]> = {},
): Promise<StoreReport> {
  return verifyStore({ pool, checkSignature, ...more });
}

/** What a report says, one line per finding. */
export function linesOf({ findings }: Pick<StoreReport, 'findings'>): string[] {
  return findings.map((f) => `${f.where}: ${f.what}`);
}

/** Deliveries of every kind and ending, and who they are. */
export interface Evidence {
  readonly product: TestProduct;
  readonly pool: Pool;
  readonly destination: Destination;
  /** Of contract `pol-7781`: a reminder that was answered 503 and then 200. */
  readonly reminder: string;
  /** Of contract `pol-7781`, too: an event that was delivered at once. */
  readonly event: string;
  readonly deadLettered: string;
  readonly cancelled: string;
  /** A reminder that is due in half a year. */
  readonly waiting: string;
  close(): Promise<void>;
}

/** Runs the product until there is evidence of every kind; the roles are stopped again, so that nothing moves. */
export async function makeEvidence(): Promise<Evidence> {
  const product = await openTestProduct({ env: QUICK });
  const destination = await openDestination(product, { answers: [503, 200], policy: PERSISTENT });
  const once = { kind: 'schedule', retry_schedule: [0], max_attempts: 1 };
  const gone = await openDestination(product, { answers: [404], policy: once });
  const { pool } = product.parts;
  const ended = (id: string): Promise<true> =>
    until(`the end of ${id}`, async () => {
      const found = await pool.query('select from audit_record where delivery_id = $1', [id]);
      return found.rows.length > 0 || undefined;
    });
  const stop = await product.start(['worker', 'reconciler']);

  const contractRef = 'pol-7781';
  const { reminder } = await product.reminders.schedule(dueNow({ contractRef, endpoint: destination.name }));
  await ended(reminder.deliveryId);
  const event = (await publishTo(product, destination, { contractRef })).deliveryId;
  const deadLettered = (await publishTo(product, gone)).deliveryId;
  await Promise.all([event, deadLettered].map(ended));
  const later = new Date(Date.now() + 86_400_000);
  const cancelled = (await publishTo(product, destination, { deliverAt: later })).deliveryId;
  await moveDeliveries(pool, {
    move: 'cancel',
    deliveryIds: [cancelled],
    actor: 'test',
    trail: JSON.stringify({ reason: 'ordered by mistake' }),
    timeoutMs: 500,
  });
  const waiting = await product.reminders.schedule(
    dueNow({ contractRef: 'pol-9', endpoint: destination.name, renewalDate: daysFromToday(210) }),
  );
  await stop();
  return {
    product,
    pool,
    destination,
    reminder: reminder.deliveryId,
    event,
    deadLettered,
    cancelled,
    waiting: waiting.reminder.deliveryId,
    async close() {
      await destination.receiver.close();
      await gone.receiver.close();
      await product.close();
    },
  };
}
