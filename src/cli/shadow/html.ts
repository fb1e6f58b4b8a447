import { escapeHtml, htmlList, htmlPage, htmlTable } from '../../domain/markup.ts';
import type { ReconciledRow } from '../../domain/shadow/reconcile.ts';
import type { ShadowReport } from '../../pipeline/shadow/report.ts';
import { summarize } from '../../pipeline/shadow/view.ts';
import { drawTimeline } from './timeline.ts';

const STYLE = `
body { font: 14px/1.45 system-ui, sans-serif; color: #1a1d21; background: #fff; margin: 2rem auto; max-width: 72rem; padding: 0 1rem }
h1 { font-size: 1.5rem; margin-bottom: .2rem } h2 { font-size: 1.1rem; margin-top: 2rem }
.verdict { display: inline-block; padding: .3rem .8rem; border-radius: .3rem; font-weight: 600 }
.passed { color: #fff; background: #1d6b3a } .failed { color: #fff; background: #a11d1d }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid #d9dde2; vertical-align: top; overflow-wrap: anywhere }
th { font-weight: 600; border-bottom-color: #8a929b } tr { break-inside: avoid }
svg { width: 100%; height: auto; font: 11px system-ui, sans-serif }
svg .weekend { fill: #e8ebee } svg .holiday { fill: #f6d9a8 } svg .day { stroke: #d9dde2 }
svg .date { fill: #5c656e } svg .ok { fill: #2a6fb0; fill-opacity: .9 } svg .bad { fill: #c22727; fill-opacity: .85 }
.key span { margin-right: 1.2rem } .key i { display: inline-block; width: .8em; height: .8em; margin-right: .4em; vertical-align: -1px }
.key .ok { background: #2a6fb0 } .key .bad { background: #c22727 } .key .weekend { background: #e8ebee } .key .holiday { background: #f6d9a8 }
@media print { body { margin: 0; max-width: none } h2 { break-after: avoid } * { print-color-adjust: exact; -webkit-print-color-adjust: exact } }
@page { size: A4 landscape; margin: 12mm }`;

const KEY = [
  ['ok', 'matched'],
  ['bad', 'differs'],
  ['weekend', 'weekend'],
  ['holiday', 'holiday'],
] as const;

/** How many rows that match the page lists; the CSV has all of them. */
const MATCHED_SHOWN = 500;

/** A report as a page of its own: nothing is loaded, and it prints. */
export function formatHtml(report: ShadowReport): string {
  const different = report.rows.filter((row) => row.findings.length > 0);
  const matched = report.rows.filter((row) => row.findings.length === 0);
  const names = report.endpoints.map((e) => e.name).join(', ');
  const comparedWith = report.hasExpected ? 'the calendar and the old list' : 'the calendar alone';
  const shown = matched.slice(0, MATCHED_SHOWN);
  const title = `Shadow report ${day(report.from)} to ${day(report.to)}`;
  return htmlPage({
    title,
    style: STYLE,
    body: `<h1>${title}</h1>
<p>${escapeHtml(names === '' ? 'No endpoint' : names)}; compared with ${comparedWith}; made ${report.generatedAt.toISOString()}</p>
<p><span class="verdict ${report.passed ? 'passed' : 'failed'}">${report.passed ? 'passed' : 'not passed'}</span></p>
${htmlList(report.reasons)}
${htmlTable(Object.keys(summarize(report.rows)).map(spoken), [Object.values(summarize(report.rows)).map(String)])}
<h2>Timeline</h2>
<p class="key">${KEY.map(([kind, name]) => `<span><i class="${kind}"></i>${name}</span>`).join('')}</p>
${drawTimeline(report)}
<h2>Coverage: ${report.coverage.dates.length} whole days</h2>
${htmlTable(
  ['jurisdiction', 'time zone', 'deliveries', 'weekend', 'holidays', 'open days with nothing due'],
  report.coverage.jurisdictions.map((j) => [
    j.jurisdiction,
    j.timeZone,
    String(j.deliveries),
    orNone(j.weekendDates),
    orNone(j.holidays.map((h) => `${h.date} ${h.name}`)),
    orNone(j.idleDates),
  ]),
)}
<h2>Differences: ${different.length}</h2>
${different.length === 0 ? '<p>None.</p>' : rowTable(different)}
<h2>Matched: ${matched.length}</h2>
${shown.length < matched.length ? `<p>The first ${shown.length} are listed; the CSV file has all of them.</p>` : ''}
${shown.length === 0 ? '' : rowTable(shown)}`,
  });
}

function rowTable(rows: readonly ReconciledRow[]): string {
  return htmlTable(
    ['contract', 'delivery', 'jurisdiction', 'due', 'calendar says', 'old list says', 'state', 'what'],
    rows.map(({ ours, expected, findings }) => [
      ours?.contractRef ?? expected?.contractRef ?? '',
      ours?.deliveryId ?? '',
      ours?.jurisdiction ?? '',
      ours?.dueAt.toISOString() ?? '',
      ours?.recomputedAt instanceof Date ? ours.recomputedAt.toISOString() : '',
      expected === undefined ? '' : `${expected.dueAt.toISOString()} (line ${expected.line})`,
      ours?.state ?? '',
      findings.length === 0 ? 'matched' : findings.map((f) => `${spoken(f.kind)}: ${f.note}`).join('; '),
    ]),
  );
}

function orNone(texts: readonly string[]): string {
  return texts.length === 0 ? 'none' : texts.join(', ');
}

function spoken(name: string): string {
  return name.replaceAll('_', ' ');
}

function day(at: Date): string {
  return at.toISOString().slice(0, 16).replace('T', ' ').replace(' 00:00', '');
}
