import type { Overview } from '../../pipeline/reconcile/overview.ts';
import { scrub } from '../../runtime/log.ts';
import { formatTable } from '../print.ts';
import type { Staleness } from './watch.ts';

/** An overview as programs read it. */
export function overviewView(overview: Overview): object {
  return {
    at: overview.at.toISOString(),
    states: overview.counts,
    states_estimated: overview.estimated,
    oldest_due_seconds: overview.oldestMs.ok / 1000,
    oldest_due_at_failing_endpoints_seconds: overview.oldestMs.failing / 1000,
    overdue: overview.overdue.ok + overview.overdue.failing,
    rates_per_second: overview.rates,
    endpoints: Object.fromEntries(overview.endpoints),
    endpoints_in_trouble: overview.troubled.map((e) => ({
      endpoint_id: e.endpointId,
      name: e.name,
      status: e.status,
      consecutive_failures: e.failures,
    })),
    at_risk: overview.atRisk,
    at_risk_next: overview.nearest.map((d) => ({
      delivery_id: d.deliveryId,
      contract_ref: d.contractRef ?? null,
      endpoint: d.endpointName,
      state: d.state,
      deadline_at: d.deadlineAt.toISOString(),
      margin_seconds: d.marginMs / 1000,
    })),
    queues:
      overview.queues === undefined
        ? null
        : [...overview.queues].map(([queue, { ready, consumers }]) => ({ queue, ready, consumers })),
    notices_waiting: overview.noticesWaiting,
    published_ahead_seconds: overview.watermarkLeadMs / 1000,
    clock_skew_seconds: overview.clockSkewMs / 1000,
  };
}

/** An overview for people, as lines; `stale`: why there is no newer one. */
export function formatOverview(overview: Overview, stale?: Staleness): string {
  const { counts, rates, oldestMs, overdue } = overview;
  const about = overview.estimated ? ' (estimated)' : '';
  return [
    `duepost at ${overview.at.toISOString()}`,
    ...(stale === undefined ? [] : [`${spell(stale.ageMs)} ago; none since: ${scrub(stale.reason)}`]),
    '',
    `deliveries${about}`,
    formatTable(Object.keys(counts), [Object.values(counts)]),
    '',
    `oldest due ${spell(oldestMs.ok)}, at failing endpoints ${spell(oldestMs.failing)}; overdue ${overdue.ok + overdue.failing}`,
    `per second ${rates.accepted.toFixed(1)} accepted, ${rates.attempts.toFixed(1)} attempts, ${rates.ended.toFixed(1)} ended`,
    `wake-ups are published ${spell(overview.watermarkLeadMs)} ahead; ${overview.noticesWaiting} notices wait`,
    '',
    'queues',
    formatQueues(overview.queues),
    '',
    'endpoints in trouble',
    formatTable(
      ['name', 'status', 'failures in a row', 'id'],
      overview.troubled.map((e) => [e.name, e.status, e.failures, e.endpointId]),
    ),
    '',
    `at risk: ${overview.atRisk}`,
    formatTable(
      ['deadline', 'left', 'contract', 'state', 'endpoint', 'delivery'],
      overview.nearest.map((d) => [
        d.deadlineAt,
        spell(d.marginMs),
        d.contractRef,
        d.state,
        d.endpointName,
        d.deliveryId,
      ]),
    ),
  ].join('\n');
}

function formatQueues(queues: Overview['queues']): string {
  if (queues === undefined) return 'the broker does not answer';
  const tiers = [...queues].filter(([queue]) => queue.startsWith('delay.'));
  const others = [...queues].filter(([queue]) => !queue.startsWith('delay.'));
  const inLadder = tiers.reduce((sum, [, { ready }]) => sum + ready, 0);
  const worked = ['deliveries', 'commands'];
  return formatTable(
    ['queue', 'ready', 'consumers'],
    [
      ...others.map(([queue, { ready, consumers }]) => [
        queue,
        ready,
        worked.includes(queue) || consumers > 0 ? consumers : undefined,
      ]),
      ['delay ladder', inLadder, undefined],
    ],
  );
}

/** A span of time, to the two largest units. */
function spell(ms: number): string {
  const total = Math.max(0, ms) / 1000;
  if (total < 60) return `${total.toFixed(1)} s`;
  const minutes = Math.floor(total / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(total % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}
