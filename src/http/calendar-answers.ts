import Type from 'typebox';
import { oneOf } from '../domain/requests/one-of.ts';
import { Day, Instant, named, orNull, refTo, Sha256, Text, Whole } from './describe.ts';

export const DueStep = named('DueStep', {
  rule: oneOf(['renewal_date', 'notice_period', 'closed', 'opening', 'within_hours', 'deadline']),
  local: Type.String({
    format: 'date-time',
    description: "RFC 3339, with the offset of the reminder's zone.",
  }),
  instant: Instant,
  note: Type.String({
    description: 'As a person would tell it.',
    examples: ['Monday, 1 March 2027 opens at 09:00; that is the first business hour.'],
  }),
});

export const DueProof = named(
  'DueProof',
  {
    inputs: Type.Object({
      renewal_date: Day,
      notice_period: Text,
      jurisdiction: Text,
      time_zone: Type.Optional(Text),
      deadline: Type.Optional(Text),
      deadline_at: Type.Optional(Instant),
    }),
    rule: Text,
    time_zone: Text,
    due_at: Instant,
    deadline_at: Instant,
    steps: Type.Array(refTo(DueStep)),
    calendar_code: Text,
    calendar_years: Type.Array(Whole, { description: 'Whose holidays `calendar_sha256` covers.' }),
    calendar_sha256: Sha256,
    holiday_library: Type.String({ examples: ['date-holidays@3.37.0'] }),
    tz_version: Type.String({ description: 'Of the time zone data.', examples: ['2026a'] }),
  },
  { description: 'Why it is due then, to be computed again by whoever doubts it.' },
);

export const Explanation = named('Explanation', {
  due_at: Instant,
  deadline_at: Instant,
  time_zone: Text,
  steps: Type.Array(refTo(DueStep)),
  proof: refTo(DueProof),
});

const Hours = Type.String({ examples: ['09:00-17:00'] });

export const Calendar = named('Calendar', {
  calendar_code: Text,
  name: orNull(Text),
  holidays_from: orNull(Text, {
    description: 'The jurisdiction whose public holidays count; null: none do.',
  }),
  time_zone: orNull(Text, { description: 'null: a reminder must say which.' }),
  time_zones: Type.Array(Text),
  weekend: Type.Array(Text),
  opening_hours: Type.Record(Text, Type.Array(Hours), { description: 'By day of the week.' }),
  year: orNull(Whole),
  holidays: Type.Array(Type.Object({ date: Day, hours: Text, name: Text })),
  exceptions: Type.Array(
    Type.Object({
      date: Type.String({
        pattern: '^(\\d{4}-)?\\d{2}-\\d{2}$',
        description: 'Of one year, or without it of every year.',
        examples: ['2027-12-24', '12-24'],
      }),
      kind: Text,
      hours: Type.Array(Hours),
      reason: Text,
    }),
  ),
  sources: Type.Array(Text),
  calendar_sha256: Sha256,
});
