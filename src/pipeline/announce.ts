import type { Publisher } from '../broker/publisher.ts';
import { killPoint } from '../runtime/kill-point.ts';
import type { Log } from '../runtime/log.ts';
import type { Traced } from '../runtime/traces.ts';

/** A delivery that wants a wake-up. */
export interface Announcement extends Traced {
  readonly deliveryId: string;
  readonly contractRef: string | undefined;
  /** The attempt to ask for. */
  readonly attempt: number;
  /** Milliseconds until it is due; negative: overdue. */
  readonly remainingMs: number;
}

/** Publishes wake-ups after their rows have committed. */
export interface Announcer {
  /**
   * Publishes in the background; what is lost is found by the reconciler. Resolves when each of these is confirmed or
   * lost; never rejects.
   */
  announce(announcements: readonly Announcement[]): Promise<void>;
  /** Publishes one and waits for the broker's confirm. Throws when it does not come. */
  announceNow(announcement: Announcement): Promise<void>;
  /** Waits until nothing is under way: with others that announce, that may be never. */
  drain(): Promise<void>;
  /** What is due later than in so many milliseconds has no wake-up yet: the feeder publishes it when its time comes near. */
  readonly reachMs: number;
  readonly counters: Readonly<{ failed: number; skipped: number }>;
}

export interface AnnouncerOptions {
  readonly publisher: Publisher;
  readonly log: Log;
  readonly horizonMs: number;
  readonly feederIntervalMs: number;
}

/** With a slow broker, memory is worth more than hints. */
const MAX_UNDER_WAY = 20_000;

export function createAnnouncer({
  publisher,
  log,
  horizonMs,
  feederIntervalMs,
}: AnnouncerOptions): Announcer {
  // The overlap with the feeder makes duplicates, never gaps.
  const reachMs = horizonMs + 2 * feederIntervalMs;
  const counters = { failed: 0, skipped: 0 };
  let underWay = 0;
  let failing = false;
  let whenDrained: (() => void)[] = [];

  async function announceNow(announcement: Announcement): Promise<void> {
    const { remainingMs, deliveryId, contractRef, attempt, traceParent } = announcement;
    const confirmed = publisher.wake(
      contractRef === undefined ? { deliveryId, attempt } : { deliveryId, attempt, contractRef },
      remainingMs,
      traceParent,
    );
    killPoint('announce.started');
    await confirmed;
    killPoint('announce.confirmed');
  }

  function settled(): void {
    underWay -= 1;
    if (underWay > 0) return;
    for (const resolve of whenDrained) resolve();
    whenDrained = [];
  }

  return {
    async announce(announcements) {
      const confirms: Promise<void>[] = [];
      for (const announcement of announcements) {
        if (announcement.remainingMs > reachMs) continue;
        if (underWay >= MAX_UNDER_WAY) {
          counters.skipped += 1;
          continue;
        }
        underWay += 1;
        const confirm = announceNow(announcement).then(
          () => {
            failing = false;
            settled();
          },
          (error: unknown) => {
            counters.failed += 1;
            if (!failing) log.fault('announce_failed', error, { note: 'the reconciler announces again' });
            failing = true;
            settled();
          },
        );
        confirms.push(confirm);
      }
      await Promise.all(confirms);
    },
    announceNow,
    drain: () => (underWay === 0 ? Promise.resolve() : new Promise((resolve) => whenDrained.push(resolve))),
    reachMs,
    counters,
  };
}
