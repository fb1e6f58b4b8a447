import { expect, test } from 'vitest';
import type { Publisher } from '../../src/broker/publisher.ts';
import { createEventAcceptor } from '../../src/pipeline/accept/events.ts';
import { createAnnouncer } from '../../src/pipeline/announce.ts';
import { openDestination } from '../support/flow.ts';
import { openTestProduct } from '../support/product.ts';
import { recordLog } from '../support/recorded-log.ts';
import { recordAnnouncements } from '../support/reminders.ts';

test('whoever announces waits for its own wake-ups, not for those of others that go on and on', async () => {
  const { log } = recordLog();
  const publisher = {
    wake: ({ deliveryId }: { deliveryId: string }) =>
      deliveryId === 'slow' ? new Promise<void>(() => undefined) : Promise.resolve(),
  } as unknown as Publisher;
  const announcer = createAnnouncer({ publisher, log, horizonMs: 60_000, feederIntervalMs: 1_000 });
  const wakeUp = { contractRef: undefined, attempt: 1, remainingMs: 0 };
  void announcer.announce([{ ...wakeUp, deliveryId: 'slow' }]);
  await announcer.announce([{ ...wakeUp, deliveryId: 'mine' }]);
  expect(announcer.counters).toEqual({ failed: 0, skipped: 0 });
});

test('what is accepted and due is announced once it has committed, and what is held is not', async () => {
  const product = await openTestProduct();
  const destination = await openDestination(product);
  const { announcer, announced } = recordAnnouncements();
  const events = createEventAcceptor({ db: product.parts.pool, announcer, timeoutMs: 2_000 });
  const publish = async (idempotencyKey: string): Promise<string | undefined> => {
    const { deliveries } = await events.publish({
      idempotencyKey,
      type: 'order.created',
      payload: {},
      endpoint: destination.name,
      contractRef: 'pol-1',
      deliverAt: undefined,
      deadlineAt: undefined,
      actor: 'test',
    });
    return deliveries[0]?.delivery_id;
  };
  const due = await publish('due');
  await product.endpoints.pause(destination.name, { actor: 'test' });
  await publish('held');
  expect(announced).toMatchObject([{ deliveryId: due, contractRef: 'pol-1', attempt: 1 }]);
  expect(announced[0]?.remainingMs).toBeLessThanOrEqual(0);
  await events.close();
  await destination.receiver.close();
  await product.close();
});
