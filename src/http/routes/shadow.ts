import Type, { type TSchema } from 'typebox';
import { refuseField } from '../../domain/refusal.ts';
import { oneOf } from '../../domain/requests/one-of.ts';
import { EndpointReference } from '../../domain/requests/schemas.ts';
import { FINDING_KINDS } from '../../domain/shadow/reconcile.ts';
import { readInstant } from '../../pipeline/accept/read-requests.ts';
import { reportShadow } from '../../pipeline/shadow/report.ts';
import { shadowReportView } from '../../pipeline/shadow/view.ts';
import { Instant, orNull, Text } from '../describe.ts';
import type { Api, ApiServer } from '../parts.ts';

const Period = Type.String({
  pattern: '^\\d{4}-\\d{2}-\\d{2}([Tt ].+)?$',
  maxLength: 40,
  description: 'RFC 3339, or a date: its beginning in UTC.',
});

export function addShadowRoutes(app: ApiServer, api: Api): void {
  app.get('/shadow/report', {
    config: { scopes: ['read'], refuses: ['not_found'] },
    schema: {
      operationId: 'getShadowReport',
      tags: ['shadow'],
      summary: 'Compare what shadow mode did with the calendar, delivery by delivery',
      description:
        "Compares with the calendar alone; the command line also takes the old system's list. `passed` needs a full week with a weekend and a holiday, and no difference.",
      querystring: Type.Object(
        { from: Period, to: Period, endpoint: Type.Optional(EndpointReference) },
        { additionalProperties: false },
      ),
      response: { 200: Report },
    },
    handler: async ({ query }) => {
      const report = await reportShadow(
        {
          from: readStart(query.from, '/from'),
          to: readStart(query.to, '/to'),
          endpoint: query.endpoint,
          expected: undefined,
        },
        api,
      );
      return shadowReportView(report);
    },
  });
}

function readStart(text: string, path: string): Date {
  const at = readInstant(text.length === 10 ? `${text}T00:00:00Z` : text, path);
  if (at === undefined) throw refuseField(path, `${path.slice(1)} is missing`);
  return at;
}

const Texts = Type.Array(Text);

const Report = answerOf(
  Type.Object({
    from: Instant,
    to: Instant,
    generated_at: Instant,
    endpoints: Type.Array(Type.Object({ endpoint_id: Text, name: Text })),
    passed: Type.Boolean(),
    reasons: Type.Array(Text, { description: 'Why it has not passed.' }),
    compared_with: Texts,
    summary: Type.Record(Text, Type.Integer()),
    coverage: Type.Object({
      dates: Texts,
      jurisdictions: Type.Array(
        Type.Object({
          jurisdiction: Text,
          time_zone: Text,
          deliveries: Type.Integer(),
          weekend_dates: Texts,
          holidays: Type.Array(Type.Object({ date: Text, name: Text })),
          idle_dates: Type.Array(Text, { description: 'Open days on which nothing was due.' }),
        }),
      ),
    }),
    rows: Type.Array(
      Type.Object({
        delivery_id: orNull(Text),
        reminder_id: orNull(Text),
        contract_ref: Text,
        jurisdiction: orNull(Text),
        state: orNull(Text),
        due_at: orNull(Instant),
        recomputed_due_at: orNull(Instant),
        expected_due_at: orNull(Instant),
        expected_line: orNull(Type.Integer()),
        first_attempt_at: orNull(Instant),
        findings: Type.Array(
          Type.Object({
            kind: oneOf([...FINDING_KINDS]),
            note: Text,
            by_ms: Type.Optional(Type.Integer()),
            against: Type.Optional(Text),
          }),
        ),
      }),
    ),
  }),
);

function answerOf(schema: TSchema): TSchema {
  return Type.Unsafe({ description: 'The report.', content: { 'application/json': { schema } } });
}
