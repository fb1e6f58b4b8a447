import { calendarsWith, everyDay } from './support.ts';

/** Due dates of many kinds as one text: what no setting of the host may change. */
export function probe(): string {
  const calendars = calendarsWith({
    late: { holidays_from: 'none', hours: { ...everyDay('00:00-24:00'), sunday: ['01:30-24:00'] } },
  });
  const lines: string[] = [];
  const zones: [string, string | undefined][] = [
    ['DE-BY', undefined],
    ['US', 'America/New_York'],
    ['US', 'Pacific/Honolulu'],
    ['EG', undefined],
    ['JP', undefined],
    ['IN', undefined],
    ['TR', undefined],
    ['NZ', 'Pacific/Apia'],
    ['late', 'Europe/London'],
  ];
  for (const [jurisdiction, timeZone] of zones) {
    for (let month = 0; month < 48; month += 1) {
      const renewalDate = new Date(Date.UTC(2026, month, 1 + ((month * 7) % 28))).toISOString().slice(0, 10);
      for (const noticePeriod of ['P30D', 'P1M', 'P10B']) {
        const due = calendars.computeDue({
          jurisdiction,
          timeZone,
          renewalDate,
          noticePeriod,
          deadline: 'P1W',
        });
        lines.push(JSON.stringify(due.proof));
      }
    }
  }
  return lines.join('\n');
}

/** What the host makes of local time, to show that the setting reached it. */
export function hostClock(): string {
  return `${new Date(2027, 6, 1).toISOString()} ${new Date(2027, 0, 1).toLocaleDateString()}`;
}
