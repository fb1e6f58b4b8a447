import { randomUUID } from 'node:crypto';
import type { ReminderRequest } from '../../src/pipeline/accept/reminders.ts';
import type { Announcement, Announcer } from '../../src/pipeline/announce.ts';

/** An announcer that keeps what it is asked to announce: a database is all that the test needs. */
export function recordAnnouncements(): { readonly announcer: Announcer; readonly announced: Announcement[] } {
  const announced: Announcement[] = [];
  return {
    announced,
    announcer: {
      announce: async (announcements) => {
        announced.push(...announcements);
      },
      announceNow: async (announcement) => {
        announced.push(announcement);
      },
      drain: () => Promise.resolve(),
      reachMs: Number.POSITIVE_INFINITY,
      counters: { failed: 0, skipped: 0 },
    },
  };
}

/** The UTC date so many days from today. */
export function daysFromToday(days: number): string {
  return new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
}

/** A reminder that is due at once: 30 days before a renewal that is 30 days away, where every hour is open. */
export function dueNow(changes: Partial<ReminderRequest> = {}): ReminderRequest {
  return {
    idempotencyKey: randomUUID(),
    contractRef: `pol-${randomUUID()}`,
    endpoint: 'notices',
    renewalDate: daysFromToday(30),
    noticePeriod: 'P30D',
    jurisdiction: '24x7',
    timeZone: 'UTC',
    deadline: undefined,
    deadlineAt: undefined,
    type: undefined,
    payload: { premium: 12.5 },
    actor: 'test',
    ...changes,
  };
}
