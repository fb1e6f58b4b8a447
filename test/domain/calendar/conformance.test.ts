import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { calendarsWith } from './support.ts';

interface Vector {
  readonly name: string;
  readonly request: {
    readonly renewal_date: string;
    readonly notice_period: string;
    readonly jurisdiction: string;
    readonly time_zone?: string;
    readonly deadline?: string;
    readonly deadline_at?: string;
  };
  readonly calendar?: object;
  readonly expect: { readonly time_zone: string; readonly due_at: string; readonly deadline_at: string };
}

const vectors = JSON.parse(
  readFileSync(new URL('../../../conformance/due-dates.json', import.meta.url), 'utf8'),
) as { readonly cases: readonly Vector[] };

describe('conformance/due-dates.json', () => {
  it.each(vectors.cases)('$name', ({ request, calendar, expect: expected }) => {
    const files = calendar === undefined ? {} : { [request.jurisdiction]: calendar };
    const due = calendarsWith(files).computeDue({
      renewalDate: request.renewal_date,
      noticePeriod: request.notice_period,
      jurisdiction: request.jurisdiction,
      timeZone: request.time_zone,
      deadline: request.deadline,
      deadlineAt: request.deadline_at === undefined ? undefined : new Date(request.deadline_at),
    });
    expect({
      time_zone: due.timeZone,
      due_at: due.dueAt.toISOString().replace('.000Z', 'Z'),
      deadline_at: due.deadlineAt.toISOString().replace('.000Z', 'Z'),
    }).toEqual(expected);
  });
});
