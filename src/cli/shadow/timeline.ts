import { DAY_MS } from '../../domain/calendar/dates.ts';
import { escapeHtml } from '../../domain/markup.ts';
import type { ReconciledRow } from '../../domain/shadow/reconcile.ts';
import type { ShadowReport } from '../../pipeline/shadow/report.ts';

const LABEL = 170;
const WIDTH = 1100;
const LANE = 34;
const HEAD = 40;
/** What is due within one such stretch is one dot. */
const BUCKET_MS = 3_600_000;
/** Of what only the old list has, which names no jurisdiction. */
const OLD_LIST = 'old list only';

/** The period as a picture: a lane per calendar, closed days shaded, a dot where something was due. */
export function drawTimeline(report: ShadowReport): string {
  const { from, to, coverage, rows } = report;
  const orphans = rows.some((row) => row.ours === undefined);
  const lanes = [
    ...coverage.jurisdictions.map((j) => `${j.jurisdiction} (${j.timeZone})`),
    ...(orphans ? [OLD_LIST] : []),
  ];
  const height = HEAD + lanes.length * LANE + 8;
  const xOf = (at: Date): number => {
    const share = (at.getTime() - from.getTime()) / (to.getTime() - from.getTime());
    return LABEL + Math.min(1, Math.max(0, share)) * (WIDTH - LABEL - 10);
  };
  const yOf = (lane: number): number => HEAD + lane * LANE;
  const dayWidth = xOf(new Date(from.getTime() + DAY_MS)) - LABEL;
  const rect = (date: string, lane: number, shade: { kind: string; title: string }): string =>
    `<rect class="${shade.kind}" x="${round(xOf(new Date(`${date}T00:00:00Z`)))}" y="${yOf(lane)}" width="${round(dayWidth)}" height="${LANE - 4}"><title>${escapeHtml(shade.title)}</title></rect>`;

  const shades = coverage.jurisdictions.flatMap((j, lane) => [
    ...j.weekendDates.map((date) => rect(date, lane, { kind: 'weekend', title: `${date}: weekend` })),
    ...j.holidays.map((h) => rect(h.date, lane, { kind: 'holiday', title: `${h.date}: ${h.name}` })),
  ]);
  const days = coverage.dates.map((date) => {
    const x = round(xOf(new Date(`${date}T00:00:00Z`)));
    const weekday = new Date(`${date}T00:00:00Z`).toUTCString().slice(0, 3);
    return `<line class="day" x1="${x}" y1="${HEAD - 8}" x2="${x}" y2="${height - 8}"/><text class="date" x="${x + 3}" y="${HEAD - 22}">${weekday}</text><text class="date" x="${x + 3}" y="${HEAD - 10}">${date.slice(5)}</text>`;
  });
  const labels = lanes.map(
    (name, lane) => `<text x="0" y="${yOf(lane) + LANE / 2 + 2}">${escapeHtml(name)}</text>`,
  );
  const laneOf = ({ ours }: ReconciledRow): number =>
    lanes.indexOf(ours === undefined ? OLD_LIST : `${ours.jurisdiction} (${ours.timeZone})`);
  const dots = gather(rows, laneOf).map(({ lane, at, matched, different }) => {
    const y = yOf(lane) + LANE / 2 - 2;
    const dot = (kind: string, count: number): string =>
      count === 0
        ? ''
        : `<circle class="${kind}" cx="${round(xOf(at))}" cy="${y}" r="${round(Math.min(13, 3 + Math.sqrt(count)))}"><title>${escapeHtml(`${at.toISOString()}: ${count} ${kind === 'ok' ? 'matched' : 'differ'}`)}</title></circle>`;
    return dot('ok', matched) + dot('bad', different);
  });
  return `<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="Timeline">${[...shades, ...days, ...labels, ...dots].join('')}</svg>`;
}

interface Dot {
  readonly lane: number;
  readonly at: Date;
  matched: number;
  different: number;
}

function gather(rows: readonly ReconciledRow[], laneOf: (row: ReconciledRow) => number): Dot[] {
  const dots = new Map<string, Dot>();
  for (const row of rows) {
    const at = row.ours?.dueAt ?? row.expected?.dueAt;
    const lane = laneOf(row);
    if (at === undefined || lane < 0) continue;
    const key = `${lane} ${Math.floor(at.getTime() / BUCKET_MS)}`;
    const dot = dots.get(key) ?? { lane, at, matched: 0, different: 0 };
    if (row.findings.length === 0) dot.matched += 1;
    else dot.different += 1;
    dots.set(key, dot);
  }
  return [...dots.values()];
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
