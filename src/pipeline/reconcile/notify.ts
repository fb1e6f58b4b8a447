import { PublishError } from '../../broker/outgoing.ts';
import type { Publisher } from '../../broker/publisher.ts';
import type { Names } from '../../broker/topology.ts';
import { killPoint } from '../../runtime/kill-point.ts';
import { withLock } from '../../store/lock.ts';
import { deleteNotices, listNotices, type Notice } from '../../store/notices.ts';
import type { Pool } from '../../store/pool.ts';
import { DELIVERED, deliveredMessageId } from '../delivered-notice.ts';

export interface NotifyOptions {
  readonly pool: Pool;
  readonly publisher: Publisher;
  readonly names: Pick<Names, 'notifications' | 'deadLetters'>;
  /** Kept from pass to pass: notices that people have, while other services' queues refuse them. */
  readonly toldPeople: Set<string>;
  /** Told how many the broker has confirmed. */
  readonly onPublished: (count: number) => void;
}

const PAGE = 500;

/**
 * Publishes the notices that wait, oldest first, and removes those that the broker has confirmed: at least once. What it
 * refuses stays for the next pass and holds up no other.
 *
 * @returns undefined: somebody else is at it
 * @throws the first failure, once every notice had its turn; without a connection, at once
 */
export function notify(options: NotifyOptions): Promise<{ readonly again: false } | undefined> {
  return withLock(options.pool, 'duepost.notices', async () => {
    await notifyPages(options);
    return { again: false };
  });
}

async function notifyPages({
  pool,
  publisher,
  names,
  toldPeople,
  onPublished,
}: NotifyOptions): Promise<void> {
  let failure: unknown;
  let isAway = false;
  let after: string | undefined;
  do {
    const notices = await listNotices(pool, { after, limit: PAGE });
    const results = await Promise.allSettled(notices.map((notice) => publishNotice(notice)));
    killPoint('notify.confirmed');
    const confirmed = notices.filter((_, i) => results[i]?.status === 'fulfilled');
    await deleteNotices(
      pool,
      confirmed.map((n) => n.noticeId),
    );
    for (const { noticeId } of confirmed) toldPeople.delete(noticeId);
    onPublished(confirmed.length);
    for (const result of results) {
      if (result.status === 'fulfilled') continue;
      failure ??= result.reason;
      isAway ||= !isRefusal(result.reason);
    }
    after = notices.at(-1)?.noticeId;
  } while (after !== undefined && !isAway);
  if (failure !== undefined) throw failure;

  async function publishNotice({ name, body, noticeId }: Notice): Promise<void> {
    const { dead_reason, ...rest } = body;
    // The queue for people may be full, and then refuses: whoever listens is not told again with each pass.
    if (name === 'delivery.dead_lettered' && !toldPeople.has(noticeId)) {
      await publisher.publish({
        exchange: names.deadLetters,
        routingKey: name,
        messageId: `notice-${noticeId}`,
        body: Buffer.from(JSON.stringify({ v: 1, ...rest, dead_reason })),
      });
      toldPeople.add(noticeId);
    }
    await publisher.publish({
      exchange: names.notifications,
      routingKey: name,
      messageId: name === DELIVERED ? deliveredMessageId(String(body['delivery_id'])) : `notice-${noticeId}`,
      body: Buffer.from(JSON.stringify({ v: 1, event: name, ...rest })),
      // Nobody has to listen.
      mandatory: false,
    });
  }
}

/** Whether the broker is there and would not take this one message. */
function isRefusal(error: unknown): boolean {
  return error instanceof PublishError && (error.failure === 'nacked' || error.failure === 'returned');
}
