// The result as one page that needs nothing else.

import { format, formatSummary } from './bench.mjs';

const escape = (text) =>
  String(text).replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);

const WIDTH = 860;
const LABEL = 290;
const BAR = 380;
const ROW = 26;

/** Bars of medians with a line over the range and a dot for every run; one chart for each unit. */
function chart(figures) {
  const top = Math.max(...figures.map((figure) => figure.summary.max)) || 1;
  const x = (value) => LABEL + (BAR * value) / top;
  const rows = figures.map((figure, i) => {
    const y = i * ROW;
    const { median, min, max } = figure.summary;
    const dots = figure.runs
      .map((run) => `<circle cx="${x(run).toFixed(1)}" cy="${y + 12}" r="2.5"/>`)
      .join('');
    const isOurs =
      /duepost|worker|beside|AMQP|one process|highest|others/.test(figure.label) &&
      !/graphile/.test(figure.label);
    return `<text x="${LABEL - 8}" y="${y + 16}" text-anchor="end">${escape(figure.label)}</text>
<rect x="${LABEL}" y="${y + 4}" width="${Math.max(1, x(median) - LABEL).toFixed(1)}" height="16" class="${isOurs ? 'ours' : 'theirs'}"/>
<line x1="${x(min).toFixed(1)}" x2="${x(max).toFixed(1)}" y1="${y + 12}" y2="${y + 12}"/>${dots}
<text x="${LABEL + BAR + 10}" y="${y + 16}">${escape(formatSummary(figure.summary))}</text>`;
  });
  return `<svg viewBox="0 0 ${WIDTH} ${figures.length * ROW + 4}" role="img">${rows.join('\n')}</svg>`;
}

function section(part) {
  const units = [...new Set(part.figures.map((figure) => figure.unit))];
  const charts = units.map(
    (unit) => `<h3>${escape(unit)}</h3>${chart(part.figures.filter((f) => f.unit === unit && f.summary))}`,
  );
  const withCpu = part.figures.filter((figure) => figure.cpuSummary);
  const cpu =
    withCpu.length === 0
      ? ''
      : `<table><tr><th>processor time, µs per delivery</th><th>node</th><th>database</th><th>broker</th></tr>${withCpu
          .map(
            (f) =>
              `<tr><td>${escape(f.label)}</td>${['node', 'database', 'broker'].map((n) => `<td>${escape(formatSummary(f.cpuSummary[n]))}</td>`).join('')}</tr>`,
          )
          .join('')}</table>`;
  const failure =
    part.failure === undefined ? '' : `<p class="missed">Failed: ${escape(part.failure.split('\n')[0])}</p>`;
  return `<section><h2>${escape(part.title)}</h2>${failure}${charts.join('')}${cpu}${part.notes.map((note) => `<p>${escape(note)}</p>`).join('')}</section>`;
}

function goalRows(parts) {
  return parts
    .flatMap((part) => part.goals)
    .map(
      (goal) =>
        `<tr class="${goal.reached ? 'reached' : 'missed'}"><td>${escape(goal.text)}</td><td>${escape(goal.goal)}</td><td>${escape(formatSummary(goal.summary))} ${escape(goal.unit)}</td><td>${goal.reached ? 'reached' : 'not reached'}</td></tr>`,
    )
    .join('');
}

/** @returns HTML with inline SVG and style */
export function drawPage({ environment, mode, rounds, parts }) {
  const facts = Object.entries(environment).map(
    ([name, value]) => `<tr><td>${escape(name)}</td><td>${escape(value)}</td></tr>`,
  );
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>duepost: measurements</title>
<style>
:root { color-scheme: light dark; --ours: #2f6fed; --theirs: #9aa5b1; --line: #334; --missed: #b3261e; --reached: #1b7f3b; }
@media (prefers-color-scheme: dark) { :root { --ours: #6b9bff; --theirs: #66717d; --line: #dde; --missed: #ff8a80; --reached: #7ddc9a; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: ${WIDTH}px; margin: 2rem auto; padding: 0 1rem; }
h3 { font-size: 0.9rem; font-weight: 600; margin: 1rem 0 0.2rem; }
svg { width: 100%; height: auto; font: 13px system-ui, sans-serif; } svg text { fill: currentColor; }
.ours { fill: var(--ours); } .theirs { fill: var(--theirs); } svg line { stroke: var(--line); stroke-width: 1.5; } svg circle { fill: var(--line); }
table { border-collapse: collapse; margin: 0.6rem 0; font-variant-numeric: tabular-nums; } td, th { text-align: left; padding: 0.15rem 0.9rem 0.15rem 0; vertical-align: top; }
tr.reached td:last-child { color: var(--reached); } .missed td:last-child, p.missed { color: var(--missed); }
</style></head><body>
<h1>duepost: measurements</h1>
<p>${escape(mode)} sizes, ${rounds} ${rounds === 1 ? 'round' : 'rounds'}, interleaved. Bars are medians, lines the range, dots single runs. Ratios are taken within a round.</p>
<table>${facts.join('')}</table>
<h2>Goals</h2><table><tr><th>figure</th><th>goal</th><th>median (range)</th><th></th></tr>${goalRows(parts)}</table>
${parts.map(section).join('\n')}
</body></html>
`;
}

/** The same for a terminal. */
export function printSummary(parts, say) {
  for (const part of parts) {
    say(`\n${part.title}`);
    for (const figure of part.figures) {
      const cpu = figure.cpuSummary;
      const shares =
        cpu === undefined
          ? ''
          : `   µs each: node ${format(cpu.node?.median)}, database ${format(cpu.database?.median)}, broker ${format(cpu.broker?.median)}`;
      say(`  ${figure.label.padEnd(42)} ${formatSummary(figure.summary).padEnd(28)} ${figure.unit}${shares}`);
    }
  }
  say('\nGoals');
  for (const goal of parts.flatMap((part) => part.goals)) {
    say(
      `  ${goal.reached ? 'reached' : 'MISSED '}  ${goal.text}: ${formatSummary(goal.summary)} ${goal.unit}, goal ${goal.goal}`,
    );
  }
}
