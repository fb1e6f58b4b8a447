import type { EventAcceptor } from '../pipeline/accept-events.ts';
import type { ReminderAcceptor } from '../pipeline/accept-reminders.ts';
import { readEvent, readReminder } from '../pipeline/read-requests.ts';
import { eventView, reminderView } from '../pipeline/views.ts';
import type { CommandHandler } from './handle.ts';

export interface CommandParts {
  readonly events: EventAcceptor;
  readonly reminders: ReminderAcceptor;
  readonly maxPayloadBytes: number;
}

/** The commands that other services may send, by routing key (contract section 7). */
export function commandHandlers({
  events,
  reminders,
  maxPayloadBytes,
}: CommandParts): Record<string, CommandHandler> {
  return {
    'reminder.schedule': async (body, context) => {
      const { reminder, duplicate } = await reminders.schedule(
        readReminder(body, { ...context, maxPayloadBytes }),
      );
      return reminderView(reminder, duplicate);
    },
    'event.publish': async (body, context) =>
      eventView(await events.publish(readEvent(body, { ...context, maxPayloadBytes }))),
  };
}
