import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { packageRoot } from '../../src/runtime/build-info.ts';
import { METRICS, type MetricSpec } from '../../src/runtime/metrics.ts';
import { parseExposition } from './exposition.ts';
import { metricsOf, type Scrape } from './promql.ts';
import { alertsFiring, loadRules } from './rules.ts';

const RULES = loadRules();

/** The series of a system without a care, as text that Prometheus would scrape. */
const HEALTHY = `
duepost_loop_age_seconds{loop="reconcile"} 1
duepost_loop_age_seconds{loop="feed"} 20
duepost_loop_age_seconds{loop="partitions"} 3000
duepost_loop_age_seconds{loop="seal"} 40
duepost_queue_consumers{queue="deliveries"} 2
duepost_queue_consumers{queue="commands"} 1
duepost_queue_messages{queue="deliveries"} 3
duepost_queue_messages{queue="commands"} 0
duepost_queue_messages{queue="poison"} 0
duepost_queue_messages{queue="delay.t0512"} 1700
duepost_queue_messages{queue="dead-letters"} 12
duepost_publisher_ready 1
duepost_oldest_due_age_seconds{endpoint="ok"} 0.2
duepost_at_risk_deliveries 0
duepost_endpoints{condition="failing"} 0
duepost_notices_waiting 0
duepost_database_pool_waiting 0
duepost_event_loop_lag_seconds 0.01
duepost_clock_skew_seconds -0.02
duepost_deliveries_ended_total{state="dead_lettered",reason="terminal_response"} 0
duepost_outcome_write_failures_total 0
duepost_first_attempt_delay_seconds_bucket{le="1"} 0
duepost_first_attempt_delay_seconds_bucket{le="60"} 0
duepost_first_attempt_delay_seconds_bucket{le="300"} 0
duepost_first_attempt_delay_seconds_bucket{le="+Inf"} 0
`;

/** Healthy for half an hour, then for another with these series instead; `n` in a value counts scrapes. */
function historyOf(changes: Readonly<Record<string, (n: number) => number>>): Scrape[] {
  const healthy = parseExposition(HEALTHY);
  const changed = Object.entries(changes).map(
    ([series, value]) => [parseExposition(`${series} 0`)[0]?.labels ?? {}, value] as const,
  );
  return Array.from({ length: 240 }, (_, i) => ({
    atSeconds: i * 15,
    samples: healthy.map((sample) => {
      const change = changed.find(([labels]) => JSON.stringify(labels) === JSON.stringify(sample.labels));
      return change === undefined || i < 120 ? sample : { ...sample, value: change[1](i - 119) };
    }),
  }));
}

test('every rule reads metrics that exist and points to its place in the runbook', () => {
  const runbook = readFileSync(join(packageRoot, 'docs/operating.md'), 'utf8');
  const headings = [...runbook.matchAll(/^### (Duepost\w+)$/gm)].map((match) => match[1] ?? '');
  expect(headings.toSorted()).toEqual(RULES.map((rule) => rule.alert).toSorted());
  for (const rule of RULES) {
    expect(unknownMetrics(rule.expr), rule.alert).toEqual([]);
    expect(rule.annotations.runbook_url).toBe(`docs/operating.md#${rule.alert.toLowerCase()}`);
    expect(rule.annotations.summary).not.toBe('');
    expect(['critical', 'warning']).toContain(rule.labels.severity);
  }
});

test('every section of the runbook says what an alert means, where to look and what to do', () => {
  const runbook = readFileSync(join(packageRoot, 'docs/operating.md'), 'utf8');
  for (const section of runbook.split(/^### /m).slice(1)) {
    expect(section.match(/\*\*(Means|Look at|Do)\*\*/g), section.split('\n')[0]).toEqual([
      '**Means**',
      '**Look at**',
      '**Do**',
    ]);
  }
});

test('a healthy system fires none of the rules', () => {
  expect(alertsFiring(RULES, historyOf({}))).toEqual([]);
});

test.each([
  [
    'DuepostLate',
    {
      'duepost_first_attempt_delay_seconds_bucket{le="300"}': (n: number) => n,
      'duepost_first_attempt_delay_seconds_bucket{le="+Inf"}': (n: number) => n,
    },
  ],
  [
    'DuepostDeadLettered',
    { 'duepost_deliveries_ended_total{state="dead_lettered",reason="terminal_response"}': () => 1 },
  ],
  ['DuepostQueueFilling', { 'duepost_queue_messages{queue="delay.t0512"}': () => 900_000 }],
  ['DuepostQueueFilling', { 'duepost_queue_messages{queue="dead-letters"}': () => 90_000 }],
  ['DuepostBacklog', { 'duepost_queue_messages{queue="deliveries"}': () => 20_000 }],
  [
    'DuepostCommandsWaiting',
    {
      'duepost_queue_messages{queue="commands"}': () => 1,
      'duepost_queue_consumers{queue="commands"}': () => 0,
    },
  ],
  ['DuepostOutcomeWritesFailing', { duepost_outcome_write_failures_total: () => 1 }],
  ['DuepostNoticesStuck', { duepost_notices_waiting: () => 1_001 }],
  ['DuepostPoolExhausted', { duepost_database_pool_waiting: () => 4 }],
  ['DuepostEventLoopLag', { duepost_event_loop_lag_seconds: () => 0.7 }],
  ['DuepostEvidenceStalled', { 'duepost_loop_age_seconds{loop="seal"}': () => 3_700 }],
  ['DuepostEvidenceStalled', { 'duepost_loop_age_seconds{loop="partitions"}': () => 15_000 }],
  ['DuepostClockSkew', { duepost_clock_skew_seconds: () => -30 }],
])('%s fires, and nothing else', (alert, changes) => {
  expect(alertsFiring(RULES, historyOf(changes))).toEqual([alert]);
});

test('a single late peak is no alert', () => {
  const late = (n: number): number => Math.min(n, 4);
  const peak = historyOf({
    'duepost_first_attempt_delay_seconds_bucket{le="300"}': late,
    'duepost_first_attempt_delay_seconds_bucket{le="+Inf"}': late,
  });
  expect(alertsFiring(RULES, peak)).toEqual([]);
});

test('every panel of the dashboard reads metrics that exist, from the data source that is provisioned', () => {
  const dashboard = JSON.parse(
    readFileSync(join(packageRoot, 'deploy/grafana/dashboards/duepost.json'), 'utf8'),
  ) as Dashboard;
  const sources = parseYaml(
    readFileSync(join(packageRoot, 'deploy/grafana/provisioning/datasources/prometheus.yml'), 'utf8'),
  ) as { datasources: { uid: string }[] };
  const uids = sources.datasources.map((source) => source.uid);
  expect(new Set(dashboard.panels.map((panel) => panel.id)).size).toBe(dashboard.panels.length);
  const read = new Set<string>();
  for (const panel of dashboard.panels) {
    for (const target of panel.targets ?? []) {
      const expression = target.expr.replaceAll('$__rate_interval', '5m');
      expect(unknownMetrics(expression), panel.title).toEqual([]);
      expect(uids).toContain(target.datasource.uid);
      for (const name of metricsOf(expression)) read.add(familyOf(name));
    }
  }
  // What is measured is shown.
  expect([...read].toSorted()).toEqual(Object.keys(METRICS).toSorted());
});

test('the tables of metrics and labels tell what the code measures', () => {
  const [metrics = '', labels = ''] = readFileSync(join(packageRoot, 'docs/metrics.md'), 'utf8').split(
    '\n## ',
  );
  expect(metrics.split('\n').filter((line) => line.startsWith('| `'))).toEqual(
    Object.entries<MetricSpec>(METRICS).map(
      ([name, spec]) =>
        `| \`${name}\` | ${spec.kind} | ${(spec.labels ?? []).map((l) => `\`${l}\``).join(', ')} | ${spec.help} |`,
    ),
  );
  const rows = labels.split('\n').map((line) => line.split(' | '));
  for (const [name, spec] of Object.entries<MetricSpec>(METRICS)) {
    for (const [i, label] of (spec.labels ?? []).entries()) {
      const row = rows.find(([of, names]) => of?.includes(`\`${label}\``) && names?.includes(`\`${name}\``));
      expect(row, `${label} of ${name}`).toBeDefined();
      for (const series of spec.initial ?? []) expect(row?.[2], name).toContain(`\`${series[i]}\``);
    }
  }
});

test('names follow the conventions of Prometheus: total for counters, and the unit', () => {
  for (const [name, spec] of Object.entries<MetricSpec>(METRICS)) {
    expect(name, name).toMatch(/^duepost_[a-z_]+$/);
    expect(name.endsWith('_total'), name).toBe(spec.kind === 'counter');
    if (spec.unit !== undefined) expect(name, name).toMatch(spec.unit === 's' ? /_seconds$/ : /_bytes$/);
    // Neither ids nor addresses: their number would have no bound.
    for (const label of spec.labels ?? []) expect(label, name).not.toMatch(/id|url|name|contract|key/);
  }
});

test('Prometheus is told to scrape the services of the compose file, and to load the rules', () => {
  const config = parseYaml(readFileSync(join(packageRoot, 'deploy/prometheus/prometheus.yml'), 'utf8')) as {
    rule_files: string[];
    scrape_configs: { dns_sd_configs: { names: string[]; port: number }[] }[];
  };
  const compose = parseYaml(readFileSync(join(packageRoot, 'docker-compose.yml'), 'utf8'), {
    merge: true,
  }) as {
    services: Record<
      string,
      { command?: string[]; environment?: Record<string, unknown>; profiles?: string[] }
    >;
  };
  const serving = Object.entries(compose.services).filter(([, service]) => service.command?.[0] === 'start');
  expect(config.rule_files).toEqual(['alerts.yml']);
  expect(config.scrape_configs[0]?.dns_sd_configs[0]?.names.toSorted()).toEqual(
    serving.map(([name]) => name).toSorted(),
  );
  for (const [name, { environment }] of serving)
    expect(environment?.['DUEPOST_HTTP_HOST'], name).toBe('0.0.0.0');
  expect(compose.services['prometheus']?.profiles).toEqual(['observability']);
  expect(compose.services['grafana']?.profiles).toEqual(['observability']);
});

interface Dashboard {
  readonly panels: readonly {
    readonly id: number;
    readonly title: string;
    readonly targets?: readonly { readonly expr: string; readonly datasource: { readonly uid: string } }[];
  }[];
}

function familyOf(name: string): string {
  const family = name.replace(/_(bucket|sum|count)$/, '');
  const spec: MetricSpec | undefined = METRICS[family as keyof typeof METRICS];
  return spec?.kind === 'histogram' ? family : name;
}

function unknownMetrics(expression: string): string[] {
  return metricsOf(expression).filter((name) => !Object.hasOwn(METRICS, familyOf(name)));
}
