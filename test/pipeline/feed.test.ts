import { afterAll, beforeAll, expect, test } from 'vitest';
import { namesOf } from '../../src/broker/topology.ts';
import { type FeedOptions, feed } from '../../src/pipeline/reconcile/feed.ts';
import { findWatermark, resetWatermark } from '../../src/store/due.ts';
import { type Destination, inMs, openDestination, publishTo } from '../support/flow.ts';
import { openTestProduct, type TestProduct } from '../support/product.ts';
import { recordAnnouncements } from '../support/reminders.ts';

const HORIZON_MS = 15 * 60_000;

let product: TestProduct;
let destination: Destination;

beforeAll(async () => {
  product = await openTestProduct();
  destination = await openDestination(product);
  await destination.receiver.close();
});

afterAll(() => product.close());

function feedWith(announcer: FeedOptions['announcer']): ReturnType<typeof feed> {
  return feed({
    ...product.parts,
    announcer,
    deliveriesQueue: namesOf(product.config.broker.prefix).deliveries,
    horizonMs: HORIZON_MS,
    signal: new AbortController().signal,
  });
}

test('a refeed beside a feeder at work is not undone by it: the next pass publishes everything again', async () => {
  const events = await Promise.all(
    [60_000, 120_000, 180_000].map((ms) => publishTo(product, destination, { deliverAt: inMs(ms) })),
  );
  const ids = events.map((event) => event.deliveryId);
  const first = recordAnnouncements();
  await resetWatermark(product.parts.pool);
  const interrupted = await feedWith({
    ...first.announcer,
    async announceNow(announcement) {
      await first.announcer.announceNow(announcement);
      // The broker is lost with all that it has, and an operator says so before the page is confirmed.
      if (first.announced.length === ids.length) await resetWatermark(product.parts.pool);
    },
  });
  expect(interrupted).toEqual({ published: 3, throttled: false });
  const { from, to } = await findWatermark(product.parts.pool, 0);
  expect(Date.parse(from.dueAt)).toBeLessThanOrEqual(Date.parse(to.dueAt));

  const second = recordAnnouncements();
  await feedWith(second.announcer);
  expect(second.announced.map((a) => a.deliveryId)).toEqual(ids);
  const third = recordAnnouncements();
  await feedWith(third.announcer);
  expect(third.announced).toEqual([]);
});
