import Type from 'typebox';
import { ExplainBody } from '../../domain/requests/operations.ts';
import {
  readBody,
  readInstant,
  requireOneDeadline,
  requirePeriods,
} from '../../pipeline/accept/read-requests.ts';
import { Calendar, Explanation } from '../calendar-answers.ts';
import { answer } from '../describe.ts';
import type { Api, ApiServer } from '../parts.ts';
import { body } from '../requests.ts';

export function addCalendarRoutes(app: ApiServer, api: Api): void {
  app.post('/calendars/explain', {
    config: { scopes: ['read', 'publish'], refuses: ['unknown_jurisdiction', 'time_zone_required'] },
    schema: {
      operationId: 'explainDueDate',
      tags: ['calendars'],
      summary: 'Compute a due date, step by step; nothing is stored',
      body: body('ExplainRequest'),
      response: { 200: answer(Explanation, 'The steps from the renewal date to `due_at`.') },
    },
    handler: async (request) => {
      const asked = readBody<ExplainBody>(ExplainBody, request.body, [requirePeriods, requireOneDeadline]);
      const due = api.calendars.computeDue({
        renewalDate: asked.renewal_date,
        noticePeriod: asked.notice_period,
        jurisdiction: asked.jurisdiction,
        timeZone: asked.time_zone,
        deadline: asked.deadline,
        deadlineAt: readInstant(asked.deadline_at, '/deadline_at'),
      });
      return {
        due_at: due.dueAt.toISOString(),
        deadline_at: due.deadlineAt.toISOString(),
        time_zone: due.timeZone,
        steps: due.steps,
        proof: due.proof,
      };
    },
  });

  app.get('/calendars/:jurisdiction', {
    config: { scopes: ['read', 'publish'], refuses: ['unknown_jurisdiction', 'time_zone_required'] },
    schema: {
      operationId: 'getCalendar',
      tags: ['calendars'],
      summary: 'Look at a calendar: opening hours, holidays, exceptions',
      params: Type.Object({
        jurisdiction: Type.String({
          description: 'ISO 3166 code (`DE`, `DE-BY`), or the name of a calendar file.',
        }),
      }),
      querystring: Type.Object(
        {
          year: Type.Optional(Type.Integer({ description: 'The current one if left out.' })),
          time_zone: Type.Optional(
            Type.String({
              maxLength: 60,
              description: 'IANA name; needed where the jurisdiction has several zones.',
            }),
          ),
        },
        { additionalProperties: false },
      ),
      response: { 200: answer(Calendar, 'The calendar.') },
    },
    handler: async (request) =>
      api.calendars.describe(request.params.jurisdiction, {
        year: request.query.year ?? new Date().getUTCFullYear(),
        timeZone: request.query.time_zone,
      }),
  });
}
