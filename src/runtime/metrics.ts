/** One metric: how it is told, and what its labels may be. Neither ids nor URLs are ever labels. */
export interface MetricSpec {
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly unit?: 's' | 'By';
  readonly labels?: readonly string[];
  /** Series that are there, at 0, before anything happens: an increase from nothing is invisible to Prometheus. */
  readonly initial?: readonly (readonly string[])[];
  /** How readings of several parts of a process become one; `sum` if undefined. */
  readonly merge?: 'sum' | 'max' | 'min';
  /** Upper bounds of the buckets. */
  readonly buckets?: readonly number[];
}

const LATENESS_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 21_600];
const CALL_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];
const MARGIN_SECONDS = [0, 5, 30, 60, 300, 900, 3600, 21_600, 86_400, 259_200, 604_800, 2_592_000];

/** Everything that is measured; docs/metrics.md tells the same, which a test proves. */
export const METRICS = {
  duepost_attempts_total: {
    kind: 'counter',
    labels: ['outcome', 'status_class'],
    help: 'Attempts that were settled, by outcome and by the class of the status that the endpoint answered with.',
  },
  duepost_attempt_duration_seconds: {
    kind: 'histogram',
    unit: 's',
    buckets: CALL_SECONDS,
    help: 'How long calls to endpoints took.',
  },
  duepost_first_attempt_delay_seconds: {
    kind: 'histogram',
    unit: 's',
    buckets: LATENESS_SECONDS,
    help: 'Time from due_at to the start of the first attempt.',
  },
  duepost_attempt_lateness_seconds: {
    kind: 'histogram',
    unit: 's',
    buckets: LATENESS_SECONDS,
    help: 'Time from due_at to the start of an attempt, retries included.',
  },
  duepost_delivery_margin_seconds: {
    kind: 'histogram',
    unit: 's',
    buckets: MARGIN_SECONDS,
    help: 'What was left until the deadline when a delivery with one was delivered.',
  },
  duepost_late_results_total: {
    kind: 'counter',
    labels: ['effect'],
    initial: [['late'], ['repeat']],
    help: 'Results that came after their claim had lapsed, or that were stored already.',
  },
  duepost_deliveries_ended_total: {
    kind: 'counter',
    labels: ['state', 'reason'],
    initial: [
      ['delivered', 'none'],
      ['dead_lettered', 'terminal_response'],
      ['dead_lettered', 'attempts_exhausted'],
      ['dead_lettered', 'deadline_passed'],
      ['dead_lettered', 'endpoint_gone'],
    ],
    help: 'Deliveries that ended by an attempt or by the passing of their deadline.',
  },
  duepost_deadlines_missed_total: {
    kind: 'counter',
    initial: [[]],
    help: 'Deliveries whose deadline left no time for another call.',
  },
  duepost_at_risk_total: {
    kind: 'counter',
    labels: ['reason'],
    initial: [['margin'], ['endpoint_failing'], ['held']],
    help: 'Deliveries flagged because they may miss their deadline.',
  },
  duepost_wakeups_total: {
    kind: 'counter',
    labels: ['verdict'],
    initial: [
      ['claimed'],
      ['wait'],
      ['crowded'],
      ['lapsed'],
      ['missed'],
      ['unreachable'],
      ['ended'],
      ['nothing'],
      ['not_understood'],
    ],
    help: 'Wake-ups by what the claim said.',
  },
  duepost_wakeup_hops_total: {
    kind: 'counter',
    initial: [[]],
    help: 'Wake-ups that were early or crowded and went back to the delay ladder.',
  },
  duepost_publishes_total: {
    kind: 'counter',
    labels: ['result'],
    initial: [['confirmed'], ['returned'], ['reply_unwanted'], ['nacked'], ['timed_out'], ['lost']],
    help: 'Messages published (wake-ups, notices, replies) by what the broker said.',
  },
  duepost_announcements_dropped_total: {
    kind: 'counter',
    labels: ['reason'],
    initial: [['failed'], ['skipped']],
    help: 'Wake-ups that were not published when their row was written; the feeder or the reconciler does it.',
  },
  duepost_messages_total: {
    kind: 'counter',
    labels: ['queue', 'result'],
    help: 'Messages taken from a queue, acknowledged, and given back after a fault of ours.',
  },
  duepost_outcome_write_failures_total: {
    kind: 'counter',
    initial: [[]],
    help: 'Failed tries to write results to the database; what is known is held until it works.',
  },
  duepost_commands_total: {
    kind: 'counter',
    labels: ['command', 'result'],
    help: 'Commands over AMQP, by what came of them.',
  },
  duepost_fed_total: { kind: 'counter', initial: [[]], help: 'Wake-ups that the feeder published.' },
  duepost_reconciler_hits_total: {
    kind: 'counter',
    labels: ['kind'],
    initial: [['silent'], ['expired']],
    help: 'Deliveries the reconciler announced again.',
  },
  duepost_notices_published_total: {
    kind: 'counter',
    initial: [[]],
    help: 'Notices for other services that the broker has confirmed.',
  },
  duepost_seals_total: { kind: 'counter', initial: [[]], help: 'Seals made over evidence.' },
  duepost_retention_removed_total: {
    kind: 'counter',
    labels: ['kind'],
    initial: [['reminder'], ['event']],
    help: 'Deliveries whose evidence was older than it is kept, and was dropped.',
  },
  duepost_loop_failures_total: {
    kind: 'counter',
    labels: ['loop'],
    help: 'Passes of a loop that failed.',
  },
  duepost_deliveries: {
    kind: 'gauge',
    labels: ['state'],
    merge: 'max',
    help: 'Deliveries by state; exact up to 10,000, beyond that from the statistics of the planner.',
  },
  duepost_oldest_due_age_seconds: {
    kind: 'gauge',
    unit: 's',
    labels: ['endpoint'],
    merge: 'max',
    help: 'How overdue the oldest due delivery is, of endpoints that answer and of failing ones; 0: none is overdue.',
  },
  duepost_overdue_deliveries: {
    kind: 'gauge',
    labels: ['endpoint'],
    merge: 'max',
    help: 'Due deliveries whose time has come and that nobody has claimed; counted up to 10,000.',
  },
  duepost_at_risk_deliveries: {
    kind: 'gauge',
    merge: 'max',
    help: 'Deliveries that may miss their deadline and have not ended; counted up to 10,000.',
  },
  duepost_endpoints: {
    kind: 'gauge',
    labels: ['condition'],
    merge: 'max',
    help: 'Endpoints by how they are.',
  },
  duepost_notices_waiting: {
    kind: 'gauge',
    merge: 'max',
    help: 'Notices that wait for the broker; counted up to 10,000.',
  },
  duepost_watermark_lead_seconds: {
    kind: 'gauge',
    unit: 's',
    merge: 'max',
    help: 'How far ahead of now wake-ups were published; about the horizon in health.',
  },
  duepost_queue_messages: {
    kind: 'gauge',
    labels: ['queue'],
    merge: 'max',
    help: 'Messages that wait in a queue for a consumer.',
  },
  duepost_queue_consumers: {
    kind: 'gauge',
    labels: ['queue'],
    merge: 'max',
    help: 'Consumers of a queue that is worked on.',
  },
  duepost_clock_skew_seconds: {
    kind: 'gauge',
    unit: 's',
    merge: 'max',
    help: "How far the host's clock is ahead of the database's.",
  },
  duepost_loop_age_seconds: {
    kind: 'gauge',
    unit: 's',
    labels: ['loop'],
    merge: 'max',
    help: 'Time since a loop last finished a pass without a fault, or since it started; of one that stands by for another process it grows.',
  },
  duepost_database_pool_connections: {
    kind: 'gauge',
    labels: ['state'],
    help: 'Connections to the database, in use and idle.',
  },
  duepost_database_pool_waiting: {
    kind: 'gauge',
    help: 'Statements that wait for a connection.',
  },
  duepost_messages_in_hand: {
    kind: 'gauge',
    labels: ['queue'],
    help: 'Messages taken and not yet acknowledged; at most the prefetch.',
  },
  duepost_consumer_attached: {
    kind: 'gauge',
    labels: ['queue'],
    merge: 'min',
    help: '1 while messages are being taken from the queue, else 0.',
  },
  duepost_calls_in_flight: { kind: 'gauge', help: 'Calls to endpoints that are under way.' },
  duepost_publisher_ready: {
    kind: 'gauge',
    merge: 'min',
    help: '1 while the broker takes messages, 0 while it is away or blocks publishers.',
  },
  duepost_event_loop_lag_seconds: {
    kind: 'gauge',
    unit: 's',
    help: 'The 99th percentile of the delay of the event loop since the last reading.',
  },
  duepost_resident_memory_bytes: { kind: 'gauge', unit: 'By', help: 'Resident memory of the process.' },
  duepost_build_info: {
    kind: 'gauge',
    labels: ['version', 'node', 'tz'],
    help: '1, with the versions of the program, of Node.js and of the time zone data.',
  },
} as const satisfies Record<string, MetricSpec>;

type NameOf<K extends MetricSpec['kind']> = {
  [N in keyof typeof METRICS]: (typeof METRICS)[N] extends { readonly kind: K } ? N : never;
}[keyof typeof METRICS];

export type CounterName = NameOf<'counter'>;
export type GaugeName = NameOf<'gauge'>;
export type HistogramName = NameOf<'histogram'>;

/** One series' value: the values of its labels, in the order of the specification, and the number. */
export type Reading = readonly [labels: readonly string[], value: number];

/** Adds to one series; cheap enough for every message. */
export type Count = (labels: readonly string[], by?: number) => void;

/** Where parts of a process hang what they measure. */
export interface Meters {
  counter(name: CounterName): Count;
  /** For what is counted elsewhere, or read when somebody looks. Several sources of one name are merged. */
  source(name: CounterName | GaugeName, read: () => Iterable<Reading>): void;
  histogram(name: HistogramName): (value: number) => void;
}
