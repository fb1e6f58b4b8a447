import { expect, test } from 'vitest';
import type { Publisher } from '../../src/broker/publisher.ts';
import { createAnnouncer } from '../../src/pipeline/announce.ts';
import { recordLog } from '../support/recorded-log.ts';

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
