import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type Destination,
  inMs,
  openDestination,
  publishTo,
  QUICK,
  reaches,
  startProcess,
} from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';

let product: TestProduct;
let destination: Destination;
const SKEW_MS = 3_600_000;

beforeAll(async () => {
  product = await openTestProduct({ env: QUICK });
  destination = await openDestination(product);
});

afterAll(async () => {
  await destination.receiver.close();
  await product.close();
});

/** What makes every clock of a process wrong, but for the monotonic one. */
function wrongBy(ms: number): Record<string, string> {
  const script = `
    const Right = Date;
    globalThis.Date = class extends Right {
      constructor(...args) { if (args.length === 0) super(Right.now() + ${ms}); else super(...args); }
      static now() { return Right.now() + ${ms}; }
    };`;
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(script)}` };
}

test.each([
  ['an hour fast', SKEW_MS],
  ['an hour slow', -SKEW_MS],
])(
  'a worker whose clock is %s sends neither early nor late, and signs with the right time',
  async (_, ms) => {
    destination.receiver.reset();
    const worker = await startProcess(product, 'worker,reconciler', wrongBy(ms));
    const dueAt = inMs(1_500);
    const { deliveryId } = await publishTo(product, destination, {
      deliverAt: dueAt,
      deadlineAt: new Date(dueAt.getTime() + 60_000),
    });
    const { attempts, auditRecords } = await reaches(product, deliveryId, 'delivered');
    await worker.stop();
    expect(attempts).toHaveLength(1);
    const startedAtMs = attempts[0]?.startedAt?.getTime() ?? 0;
    expect(startedAtMs).toBeGreaterThanOrEqual(dueAt.getTime());
    expect(startedAtMs).toBeLessThan(dueAt.getTime() + 60_000);
    expect(auditRecords).toMatchObject([{ state: 'delivered', inTime: true }]);
    // The receiver refuses a signature that is minutes old or ahead.
    expect(destination.receiver.calls().map((call) => [call.verified, call.answered])).toEqual([[true, 200]]);
  },
);
