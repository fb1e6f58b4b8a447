/** A stretch of one local date, in minutes since its midnight; `until` (up to 1440) is not part of it. */
export interface Span {
  readonly from: number;
  readonly until: number;
}

export const DAY_MINUTES = 1440;
export const WHOLE_DAY: Span = { from: 0, until: DAY_MINUTES };
export const OFFICE_HOURS: Span = { from: 9 * 60, until: 17 * 60 };

/** The span that "09:00-17:00" names ("24:00" only as an end), or what is wrong and what to write instead. */
export function parseSpan(text: unknown): Span | string {
  const parts = /^(\d{2}):(\d{2})-(\d{2}):(\d{2})$/.exec(typeof text === 'string' ? text : '');
  if (parts === null) return `${JSON.stringify(text)} is no span of hours: write it like "09:00-17:00"`;
  const [fromHour = 0, fromMinute = 0, untilHour = 0, untilMinute = 0] = parts.slice(1).map(Number);
  const span = { from: fromHour * 60 + fromMinute, until: untilHour * 60 + untilMinute };
  const shown = `"${parts[0]}"`;
  if (fromMinute > 59 || untilMinute > 59 || span.from >= DAY_MINUTES || span.until > DAY_MINUTES) {
    return `${shown} holds a time that no day has: hours go from 00:00 to 24:00`;
  }
  if (span.from === span.until) {
    return `${shown} is empty: write "00:00-24:00" for always open, [] for closed`;
  }
  if (span.from > span.until) {
    const tonight = formatSpan({ from: span.from, until: DAY_MINUTES });
    // Midnight itself ends this day; only what lies after it goes to the next.
    const next =
      span.until === 0 ? '' : ` here and "${formatSpan({ from: 0, until: span.until })}" on the next day`;
    return `${shown} goes past midnight: write "${tonight}"${next}`;
  }
  return span;
}

export function formatSpan(span: Span): string {
  return `${formatMinute(span.from)}-${formatMinute(span.until)}`;
}

export function formatMinute(minute: number): string {
  const hour = Math.floor(minute / 60);
  return `${String(hour).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`;
}

/** Spans in order, those that touch made one, so that 09:00-12:00 and 12:00-17:00 are one opening. */
export function mergeSpans(spans: readonly Span[]): Span[] {
  const merged: Span[] = [];
  for (const span of [...spans].sort((a, b) => a.from - b.from)) {
    const last = merged.at(-1);
    if (last !== undefined && span.from <= last.until) {
      merged[merged.length - 1] = { from: last.from, until: Math.max(last.until, span.until) };
    } else merged.push(span);
  }
  return merged;
}

/** What is left of the spans when a closed one is taken out. */
export function withoutSpan(spans: readonly Span[], closed: Span): Span[] {
  return spans.flatMap((span) => [
    ...(span.from < closed.from ? [{ from: span.from, until: Math.min(span.until, closed.from) }] : []),
    ...(span.until > closed.until ? [{ from: Math.max(span.from, closed.until), until: span.until }] : []),
  ]);
}

/** What both lists have in common. */
export function commonSpans(spans: readonly Span[], others: readonly Span[]): Span[] {
  return mergeSpans(
    spans.flatMap((span) =>
      others
        .map((other) => ({ from: Math.max(span.from, other.from), until: Math.min(span.until, other.until) }))
        .filter((both) => both.from < both.until),
    ),
  );
}
