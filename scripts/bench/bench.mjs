// What every part gets: the sink, sizes, and a place for figures, notes and goals.

import { createServer } from 'node:net';
import { ratios, summarise } from './statistics.mjs';

const number = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

export const format = (value) =>
  value === undefined ? '–' : Math.abs(value) >= 100 ? whole.format(value) : number.format(value);

/** `median (lowest – highest)`. */
export const formatSummary = (summary) =>
  summary === undefined
    ? '–'
    : summary.min === summary.max
      ? format(summary.median)
      : `${format(summary.median)} (${format(summary.min)} – ${format(summary.max)})`;

/**
 * @param options `mode` quick, normal or long; `rounds`; `against` another build; `say` prints a line
 */
export function createBench({ sink, sinkUrl, mode, rounds, against, say }) {
  let figures = new Map();
  let goals = [];
  let notes = [];

  function record({ label, unit, value, cpu, more }) {
    const figure = figures.get(label) ?? { label, unit, runs: [], cpu: [], more: [] };
    figures.set(label, figure);
    figure.runs.push(value);
    figure.cpu.push(cpu);
    figure.more.push(more);
    const shares =
      cpu === undefined
        ? ''
        : `   µs each: node ${format(cpu.node)}, database ${format(cpu.database)}, broker ${format(cpu.broker)}`;
    say(`    ${label.padEnd(40)} ${format(value).padStart(9)} ${unit}${shares}`);
  }

  function judge({ text, ratio, figure, atLeast, atMost }) {
    const [ours, theirs] = ratio ?? [figure];
    const runs = figures.get(ours)?.runs ?? [];
    const summary = ratio === undefined ? summarise(runs) : ratios(runs, figures.get(theirs)?.runs ?? []);
    if (summary === undefined) return undefined;
    const reached = atLeast === undefined ? summary.median <= atMost : summary.median >= atLeast;
    return {
      text,
      isRatio: ratio !== undefined,
      unit: ratio === undefined ? figures.get(ours).unit : '×',
      summary,
      goal: atLeast === undefined ? `≤ ${atMost}` : `≥ ${atLeast}`,
      reached,
    };
  }

  return {
    sink,
    sinkUrl,
    rounds,
    against,
    record,
    size: (sizes) => sizes[mode],
    note: (text) => notes.push(text),
    goal: (goal) => goals.push(goal),
    freePort,
    /** Runs one part and gives what it found. */
    async run(part) {
      figures = new Map();
      goals = [];
      notes = [];
      say(`\n  ${part.title}`);
      let failure;
      try {
        await part.run(this);
      } catch (error) {
        failure = error?.stack ?? String(error);
        say(`    FAILED: ${failure}`);
      }
      return {
        name: part.name,
        title: part.title,
        failure,
        notes,
        figures: [...figures.values()].map((figure) => ({
          ...figure,
          summary: summarise(figure.runs),
          cpuSummary: summariseProcessors(figure.cpu),
        })),
        goals: goals.map(judge).filter((goal) => goal !== undefined),
      };
    },
  };
}

function summariseProcessors(runs) {
  const known = runs.filter((cpu) => cpu !== undefined);
  if (known.length === 0) return undefined;
  return Object.fromEntries(
    ['node', 'database', 'broker'].map((name) => [name, summarise(known.map((cpu) => cpu[name]))]),
  );
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
