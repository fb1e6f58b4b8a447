import type { Publisher } from '../broker/publisher.ts';
import type { Names } from '../broker/topology.ts';
import { killPoint } from '../runtime/kill-point.ts';
import { withLock } from '../store/lock.ts';
import { deleteNotices, listNotices, type Notice } from '../store/notices.ts';
import type { Pool } from '../store/pool.ts';

export interface NotifyOptions {
  readonly pool: Pool;
  readonly publisher: Publisher;
  readonly names: Pick<Names, 'notifications' | 'deadLetters'>;
}

const PAGE = 500;

/**
 * Publishes the notices that wait, oldest first, and removes them once the broker has confirmed: at least once.
 *
 * @returns how many were published
 */
export async function notify(options: NotifyOptions): Promise<number> {
  return (await withLock(options.pool, 'duepost.notices', () => notifyPages(options))) ?? 0;
}

async function notifyPages({ pool, publisher, names }: NotifyOptions): Promise<number> {
  let published = 0;
  for (;;) {
    const notices = await listNotices(pool, PAGE);
    if (notices.length === 0) return published;
    await Promise.all(notices.map((notice) => publishNotice(notice)));
    killPoint('notify.confirmed');
    await deleteNotices(
      pool,
      notices.map((n) => n.noticeId),
    );
    published += notices.length;
  }

  async function publishNotice({ name, body, noticeId }: Notice): Promise<void> {
    const { dead_reason, ...rest } = body;
    await publisher.publish({
      exchange: names.notifications,
      routingKey: name,
      messageId: `notice-${noticeId}`,
      body: Buffer.from(JSON.stringify({ v: 1, event: name, ...rest })),
      // Nobody has to listen.
      mandatory: false,
    });
    if (name !== 'delivery.dead_lettered') return;
    await publisher.publish({
      exchange: names.deadLetters,
      routingKey: name,
      messageId: `notice-${noticeId}`,
      body: Buffer.from(JSON.stringify({ v: 1, ...rest, dead_reason })),
    });
  }
}
