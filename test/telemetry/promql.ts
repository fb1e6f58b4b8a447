import type { SyntaxNode } from '@lezer/common';
import { parser } from '@prometheus-io/lezer-promql';
import type { Sample } from './exposition.ts';

// As much of PromQL as our alert rules use, after the documentation of Prometheus; the grammar is Prometheus's own.

/** Scrapes in the order of time, seconds apart as told. */
export interface Scrape {
  readonly atSeconds: number;
  readonly samples: readonly Sample[];
}

type Labels = Readonly<Record<string, string>>;
type Series = {
  readonly labels: Labels;
  readonly points: readonly (readonly [atSeconds: number, value: number])[];
};
type Vector = readonly Sample[];
type Value = number | Vector | readonly Series[];

const LOOKBACK_SECONDS = 300;

/** Throws at what is not PromQL. */
export function parse(expression: string): SyntaxNode {
  const tree = parser.parse(expression);
  tree.iterate({
    enter(node) {
      if (node.type.isError) throw new Error(`not PromQL at ${node.from}: ${expression}`);
    },
  });
  const root = tree.topNode.firstChild;
  if (root === null) throw new Error('an empty expression');
  return root;
}

/** The names of the metrics that an expression reads. */
export function metricsOf(expression: string): string[] {
  parse(expression);
  const names: string[] = [];
  parser.parse(expression).iterate({
    enter(node) {
      if (node.name === 'VectorSelector')
        names.push(expression.slice(node.node.firstChild?.from, node.node.firstChild?.to));
    },
  });
  return names;
}

/** What Prometheus would have stored of these scrapes. */
export interface History {
  readonly instants: readonly number[];
  /** What an expression gives at an instant; a comparison that does not hold gives nothing. */
  evaluate(expression: string, atSeconds: number): Vector;
}

export function createHistory(scrapes: readonly Scrape[]): History {
  const byName = new Map<string, Map<string, { labels: Labels; points: [number, number][] }>>();
  // The same arrays come again and again while a state lasts.
  const keys = new WeakMap<Labels, string>();
  for (const { atSeconds, samples } of scrapes) {
    for (const { labels, value } of samples) {
      const name = labels['__name__'] ?? '';
      const key = keys.get(labels) ?? keyOf(labels);
      keys.set(labels, key);
      const named = byName.get(name) ?? new Map();
      byName.set(name, named);
      const series = named.get(key) ?? { labels, points: [] };
      named.set(key, series);
      series.points.push([atSeconds, value]);
    }
  }
  const instants = scrapes.map((scrape) => scrape.atSeconds);
  const nodes = new Map<string, SyntaxNode>();
  return {
    instants,
    evaluate(expression, atSeconds) {
      const node = nodes.get(expression) ?? parse(expression);
      nodes.set(expression, node);
      const find = (name: string): Series[] => [...(byName.get(name)?.values() ?? [])];
      const value = evaluator(expression, { find, instants, now: atSeconds })(node);
      return typeof value === 'number' ? [{ labels: {}, value }] : (value as Vector);
    },
  };
}

interface Instant {
  readonly find: (name: string) => Series[];
  readonly instants: readonly number[];
  readonly now: number;
}

function evaluator(text: string, { find, instants, now }: Instant): (node: SyntaxNode) => Value {
  const textOf = (node: SyntaxNode): string => text.slice(node.from, node.to);

  function run(node: SyntaxNode): Value {
    const [first, second] = childrenOf(node);
    switch (node.name) {
      case 'NumberDurationLiteral':
        return Number(textOf(node));
      case 'ParenExpr':
        return run(first as SyntaxNode);
      case 'VectorSelector':
        return latest(select(node));
      case 'MatrixSelector':
        return window(select(first as SyntaxNode), toSeconds(textOf(second as SyntaxNode)));
      case 'AggregateExpr':
        return aggregate(node);
      case 'FunctionCall':
        return call(textOf(first as SyntaxNode), childrenOf(second as SyntaxNode));
      case 'BinaryExpr':
        return binary(node);
      default:
        throw new Error(`${node.name} is not supported: ${text}`);
    }
  }

  function select(node: SyntaxNode): Series[] {
    const [name, matchers] = childrenOf(node);
    const tests = (matchers === undefined ? [] : childrenOf(matchers)).map((matcher) => {
      const [label, operator, value] = childrenOf(matcher).map(textOf) as [string, string, string];
      const wanted = JSON.parse(value) as string;
      const pattern = new RegExp(`^(?:${wanted})$`);
      return ({ labels }: Series): boolean => {
        const actual = labels[label] ?? '';
        const matches = operator.endsWith('~') ? pattern.test(actual) : actual === wanted;
        return matches !== operator.startsWith('!');
      };
    });
    return find(textOf(name as SyntaxNode)).filter((series) => tests.every((test) => test(series)));
  }

  /** What the last scrape did not have any more is stale, and gone. */
  function latest(series: readonly Series[]): Vector {
    const scrapedAt = instants.findLast((at) => at <= now);
    if (scrapedAt === undefined || now - scrapedAt > LOOKBACK_SECONDS) return [];
    return series.flatMap(({ labels, points }) => {
      const point = points.find(([at]) => at === scrapedAt);
      return point === undefined ? [] : [{ labels, value: point[1] }];
    });
  }

  function window(series: readonly Series[], seconds: number): Series[] {
    return series
      .map(({ labels, points }) => ({
        labels,
        points: points.filter(([at]) => at > now - seconds && at <= now),
      }))
      .filter(({ points }) => points.length > 0);
  }

  function call(name: string, args: readonly SyntaxNode[]): Value {
    const values = args.map(run);
    const over = (reduce: (points: Series['points']) => number | undefined): Vector =>
      (values[0] as readonly Series[]).flatMap(({ labels, points }) => {
        const value = reduce(points);
        return value === undefined ? [] : [{ labels: without(labels, ['__name__']), value }];
      });
    switch (name) {
      case 'increase':
        return over(increaseOf);
      case 'rate':
        return over((points) => {
          const gained = increaseOf(points);
          const seconds = (points.at(-1)?.[0] ?? 0) - (points[0]?.[0] ?? 0);
          return gained === undefined ? undefined : gained / seconds;
        });
      case 'max_over_time':
        return over((points) => Math.max(...points.map(([, value]) => value)));
      case 'min_over_time':
        return over((points) => Math.min(...points.map(([, value]) => value)));
      case 'abs':
        return (values[0] as Vector).map((s) => ({ ...s, value: Math.abs(s.value) }));
      case 'absent':
        return (values[0] as Vector).length === 0 ? [{ labels: {}, value: 1 }] : [];
      case 'histogram_quantile':
        return quantiles(values[0] as number, values[1] as Vector);
      default:
        throw new Error(`${name}() is not supported: ${text}`);
    }
  }

  function aggregate(node: SyntaxNode): Vector {
    const [operator, ...rest] = childrenOf(node);
    const modifier = rest.find((n) => n.name === 'AggregateModifier');
    const by =
      modifier === undefined ? [] : modifier.getChildren('GroupingLabels').flatMap(childrenOf).map(textOf);
    const body = rest.find((n) => n.name === 'FunctionCallBody') as SyntaxNode;
    const groups = new Map<string, { labels: Labels; values: number[] }>();
    for (const { labels, value } of run(childrenOf(body)[0] as SyntaxNode) as Vector) {
      const kept = only(labels, by);
      const group = groups.get(keyOf(kept)) ?? { labels: kept, values: [] };
      group.values.push(value);
      groups.set(keyOf(kept), group);
    }
    const reduce = {
      sum: (v: number[]) => v.reduce((a, b) => a + b, 0),
      max: (v: number[]) => Math.max(...v),
      min: (v: number[]) => Math.min(...v),
      count: (v: number[]) => v.length,
    }[textOf(operator as SyntaxNode)];
    if (reduce === undefined) throw new Error(`${textOf(operator as SyntaxNode)} is not supported: ${text}`);
    return [...groups.values()].map(({ labels, values }) => ({ labels, value: reduce(values) }));
  }

  function binary(node: SyntaxNode): Value {
    const children = childrenOf(node);
    const operator = textOf(children[1] as SyntaxNode);
    const left = run(children[0] as SyntaxNode);
    const right = run(children.at(-1) as SyntaxNode);
    const matching = node.getChild('MatchingModifierClause');
    const on = matching?.getChildren('GroupingLabels').flatMap(childrenOf).map(textOf);
    const joined = (labels: Labels): string =>
      keyOf(on === undefined ? without(labels, ['__name__']) : only(labels, on));
    if (operator === 'unless' || operator === 'and' || operator === 'or') {
      const keys = new Set((right as Vector).map((s) => joined(s.labels)));
      if (operator !== 'or')
        return (left as Vector).filter((s) => keys.has(joined(s.labels)) === (operator === 'and'));
      const taken = new Set((left as Vector).map((s) => joined(s.labels)));
      return [...(left as Vector), ...(right as Vector).filter((s) => !taken.has(joined(s.labels)))];
    }
    if (typeof right !== 'number') throw new Error(`only numbers stand to the right of ${operator}: ${text}`);
    const holds = COMPARISONS[operator];
    if (holds === undefined) throw new Error(`${operator} is not supported: ${text}`);
    return (left as Vector).filter(({ value }) => holds(value, right));
  }

  return run;
}

const COMPARISONS: Readonly<Record<string, (a: number, b: number) => boolean>> = {
  '>': (a, b) => a > b,
  '<': (a, b) => a < b,
  '>=': (a, b) => a >= b,
  '<=': (a, b) => a <= b,
  '==': (a, b) => a === b,
  '!=': (a, b) => a !== b,
};

/** A counter that falls was reset: it began again at 0. */
function increaseOf(points: Series['points']): number | undefined {
  if (points.length < 2) return undefined;
  let sum = 0;
  for (let i = 1; i < points.length; i += 1) {
    const [before, after] = [points[i - 1]?.[1] ?? 0, points[i]?.[1] ?? 0];
    sum += after < before ? after : after - before;
  }
  return sum;
}

function quantiles(q: number, buckets: Vector): Vector {
  const groups = groupByLabels(buckets);
  return [...groups.values()].flatMap(({ labels, steps }) => {
    const total = steps.at(-1)?.count ?? 0;
    if (total === 0) return [];
    const wanted = q * total;
    const index = steps.findIndex(({ count }) => count >= wanted);
    const [below, step] = [steps[index - 1], steps[index]];
    if (step === undefined) return [];
    if (step.bound === Number.POSITIVE_INFINITY) return [{ labels, value: below?.bound ?? 0 }];
    const [from, counted] = [below?.bound ?? 0, below?.count ?? 0];
    return [{ labels, value: from + ((step.bound - from) * (wanted - counted)) / (step.count - counted) }];
  });
}

function groupByLabels(buckets: Vector) {
  const groups = new Map<string, { labels: Labels; steps: { bound: number; count: number }[] }>();
  for (const { labels, value } of buckets) {
    const kept = without(labels, ['le', '__name__']);
    const group = groups.get(keyOf(kept)) ?? { labels: kept, steps: [] };
    group.steps.push({
      bound: labels['le'] === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels['le']),
      count: value,
    });
    groups.set(keyOf(kept), group);
  }
  for (const { steps } of groups.values()) steps.sort((a, b) => a.bound - b.bound);
  return groups;
}

function childrenOf(node: SyntaxNode): SyntaxNode[] {
  const children: SyntaxNode[] = [];
  for (let child = node.firstChild; child !== null; child = child.nextSibling) children.push(child);
  return children;
}

function toSeconds(duration: string): number {
  const [, amount, unit] = /^(\d+)([smhd])$/.exec(duration) ?? [];
  const seconds = { s: 1, m: 60, h: 3_600, d: 86_400 }[unit ?? ''];
  if (seconds === undefined) throw new Error(`${duration} is not supported`);
  return Number(amount) * seconds;
}

function only(labels: Labels, names: readonly string[]): Labels {
  return Object.fromEntries(Object.entries(labels).filter(([name]) => names.includes(name)));
}

function without(labels: Labels, names: readonly string[]): Labels {
  return Object.fromEntries(Object.entries(labels).filter(([name]) => !names.includes(name)));
}

function keyOf(labels: Labels): string {
  return JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)));
}
