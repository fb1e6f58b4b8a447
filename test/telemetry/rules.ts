import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse as parseYaml } from 'yaml';
import { packageRoot } from '../../src/runtime/build-info.ts';
import { createHistory, type History, type Scrape } from './promql.ts';

export interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}

/** The alert rules as they are shipped. */
export function loadRules(): readonly Rule[] {
  const text = readFileSync(join(packageRoot, 'deploy/prometheus/alerts.yml'), 'utf8');
  const { groups } = parseYaml(text) as { groups: { rules: Rule[] }[] };
  return groups.flatMap((group) => group.rules);
}

/** The alerts that fire at some instant of a history, as Prometheus would evaluate them at every scrape. */
export function alertsFiring(rules: readonly Rule[], scrapes: readonly Scrape[]): string[] {
  const history = createHistory(scrapes);
  return rules.filter((rule) => fires(rule, history)).map((rule) => rule.alert);
}

function fires(rule: Rule, history: History): boolean {
  const forSeconds = 60 * Number.parseInt(rule.for ?? '0', 10);
  const since = new Map<string, number>();
  for (const atSeconds of history.instants) {
    const active = new Set(history.evaluate(rule.expr, atSeconds).map((s) => JSON.stringify(s.labels)));
    for (const key of since.keys()) if (!active.has(key)) since.delete(key);
    for (const key of active) {
      const from = since.get(key) ?? atSeconds;
      since.set(key, from);
      if (atSeconds - from >= forSeconds) return true;
    }
  }
  return false;
}
