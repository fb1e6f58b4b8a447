import type { EventAcceptor } from '../pipeline/accept/events.ts';
import { readCancel, readEvent, readReminder, readReschedule } from '../pipeline/accept/read-requests.ts';
import type { ReminderAcceptor } from '../pipeline/accept/reminders.ts';
import type { Rescheduler } from '../pipeline/timing/reschedule.ts';
import { eventView, reminderView } from '../pipeline/views.ts';
import type { CommandHandler } from './handle.ts';

export interface CommandParts {
  readonly events: EventAcceptor;
  readonly reminders: ReminderAcceptor;
  readonly rescheduler: Rescheduler;
  readonly maxPayloadBytes: number;
}

/** The commands that other services may send, by routing key (contract section 7). */
export function commandHandlers({
  events,
  reminders,
  rescheduler,
  maxPayloadBytes,
}: CommandParts): Record<string, CommandHandler> {
  return {
    'reminder.schedule': async (body, context) => {
      const { reminder, duplicate } = await reminders.schedule(
        readReminder(body, { ...context, maxPayloadBytes }),
      );
      return reminderView(reminder, duplicate);
    },
    'reminder.reschedule': async (body, context) => {
      const { applied, reminder } = await rescheduler.reschedule(readReschedule(body, context));
      return { applied, ...reminderView(reminder, false) };
    },
    'reminder.cancel': async (body, context) => {
      const { reminder } = await rescheduler.cancel(readCancel(body, context));
      return reminderView(reminder, false);
    },
    'event.publish': async (body, context) =>
      eventView(await events.publish(readEvent(body, { ...context, maxPayloadBytes }))),
  };
}

/**
 * What a command is about, by the name that it gives it. Commands about one reminder or contract depend on each other;
 * events do not, whichever contract they name.
 */
export function subjectOf(
  routingKey: string,
  { reminder_id, contract_ref }: Readonly<Record<string, unknown>>,
): string | undefined {
  const name = routingKey.startsWith('reminder.') ? (reminder_id ?? contract_ref) : undefined;
  return typeof name === 'string' ? name : undefined;
}
