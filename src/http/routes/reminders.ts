import Type from 'typebox';
import { Refusal } from '../../domain/refusal.ts';
import { ContractRef } from '../../domain/requests/schemas.ts';
import { readReminder, readReminderCancel, readReminderPatch } from '../../pipeline/accept/read-requests.ts';
import { reminderView } from '../../pipeline/views.ts';
import { findReminder, listReminders } from '../../store/reminders.ts';
import { Reminder, ReminderPage, RescheduledReminder } from '../answers.ts';
import { answer } from '../describe.ts';
import { readPage } from '../page.ts';
import type { Api, ApiServer } from '../parts.ts';
import { PAGE_MEMBERS, readIdempotencyKey } from '../read.ts';
import { body, ID_IN_PATH, IDEMPOTENCY_HEADER } from '../requests.ts';

export function addReminderRoutes(app: ApiServer, api: Api): void {
  app.post('/reminders', {
    config: {
      scopes: ['publish'],
      refuses: [
        'idempotency_key_missing',
        'not_found',
        'endpoint_disabled',
        'idempotency_key_reused',
        'window_closed',
        'unknown_jurisdiction',
        'time_zone_required',
      ],
    },
    schema: {
      operationId: 'scheduleReminder',
      tags: ['reminders'],
      summary: 'Schedule a reminder',
      headers: IDEMPOTENCY_HEADER,
      body: body('ReminderRequest'),
      response: { 202: answer(Reminder, 'It is stored; `duplicate` says that it was before.') },
    },
    handler: async (request, reply) => {
      const { reminder, duplicate } = await api.reminders.schedule(
        readReminder(request.body, {
          outerKey: readIdempotencyKey(request),
          actor: request.principal.actor,
          maxPayloadBytes: api.maxPayloadBytes,
        }),
      );
      return reply.code(202).send(reminderView(reminder, duplicate));
    },
  });

  app.get('/reminders', {
    config: { scopes: ['read'] },
    schema: {
      operationId: 'listReminders',
      tags: ['reminders'],
      summary: 'List reminders, newest first',
      querystring: Type.Object(
        { contract_ref: Type.Optional(ContractRef), ...PAGE_MEMBERS },
        { additionalProperties: false },
      ),
      response: { 200: answer(ReminderPage, 'A page.') },
    },
    handler: (request) =>
      readPage({
        name: 'reminders',
        query: request.query,
        read: (after, limit) =>
          listReminders(api.db, {
            limit,
            ...(request.query.contract_ref === undefined ? {} : { contractRef: request.query.contract_ref }),
            ...(after === undefined ? {} : { before: String(after[0]) }),
          }),
        positionOf: (reminder) => [reminder.reminderId],
        show: (reminder) => reminderView(reminder, false),
      }),
  });

  app.get('/reminders/:id', {
    config: { scopes: ['read'], refuses: ['not_found'] },
    schema: {
      operationId: 'getReminder',
      tags: ['reminders'],
      summary: 'Look at a reminder',
      params: ID_IN_PATH,
      response: { 200: answer(Reminder, 'The reminder.') },
    },
    handler: async (request) => {
      const reminder = await findReminder(api.db, request.params.id);
      if (reminder === undefined) throw new Refusal('not_found', `there is no reminder ${request.params.id}`);
      return reminderView(reminder, false);
    },
  });

  app.patch('/reminders/:id', {
    config: {
      scopes: ['publish', 'operate'],
      refuses: [
        'not_found',
        'already_delivered',
        'transition_not_allowed',
        'idempotency_key_reused',
        'window_closed',
        'unknown_jurisdiction',
        'time_zone_required',
      ],
    },
    schema: {
      operationId: 'rescheduleReminder',
      tags: ['reminders'],
      summary: 'Move a reminder that has not ended',
      params: ID_IN_PATH,
      headers: IDEMPOTENCY_HEADER,
      body: body('ReminderPatch'),
      response: {
        200: answer(
          RescheduledReminder,
          'Moved; `applied` says whether the body follows, or the timing only.',
        ),
      },
    },
    handler: async (request) => {
      const { applied, reminder } = await api.rescheduler.reschedule(
        readReminderPatch(request.params.id, request.body, {
          outerKey: readIdempotencyKey(request),
          actor: request.principal.actor,
        }),
      );
      return { applied, ...reminderView(reminder, false) };
    },
  });

  app.post('/reminders/:id/cancel', {
    config: {
      scopes: ['publish', 'operate'],
      refuses: ['not_found', 'already_delivered', 'transition_not_allowed', 'idempotency_key_reused'],
    },
    schema: {
      operationId: 'cancelReminder',
      tags: ['reminders'],
      summary: 'Cancel a reminder that has not ended',
      params: ID_IN_PATH,
      headers: IDEMPOTENCY_HEADER,
      body: body('Reason'),
      response: { 200: answer(Reminder, 'Cancelled.') },
    },
    handler: async (request) => {
      const { reminder } = await api.rescheduler.cancel(
        readReminderCancel(request.params.id, request.body, {
          outerKey: readIdempotencyKey(request),
          actor: request.principal.actor,
        }),
      );
      return reminderView(reminder, false);
    },
  });
}
