import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
import { DiagLogLevel, diag } from '@opentelemetry/api';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { type Resource, resourceFromAttributes } from '@opentelemetry/resources';
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { pause } from './backoff.ts';
import { version } from './build-info.ts';
import type { Config } from './config.ts';
import type { Log } from './log.ts';
import { createMeters } from './meters.ts';
import type { Meters } from './metrics.ts';
import { createTraces, type Traces } from './traces.ts';

/** What a process tells about itself to those who watch. */
export interface Telemetry {
  readonly meters: Meters;
  /** Undefined: none are made. */
  readonly traces: Traces | undefined;
  /** Every metric in Prometheus's text format. */
  metricsText(): Promise<string>;
  /** Sends what is left, within two seconds; never rejects. */
  close(): Promise<void>;
}

const EXPORT_INTERVAL_MS = 15_000;
const LONGEST_CLOSE_MS = 2_000;
const NANOSECONDS = 1e9;
/** How often the delay of the event loop is measured; what it reads contains this pause. */
const RESOLUTION_MS = 20;

/** Opens the telemetry of a process: `/metrics` always, OTLP where an endpoint is configured. */
export function openTelemetry(config: Config['telemetry'], log: Log): Telemetry {
  const resource = resourceFromAttributes({
    'service.name': 'duepost',
    'service.version': version,
    'service.instance.id': `${hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`,
  });
  const scraped = new PrometheusExporter({ preventServerStart: true });
  // Resource and scope are labels that Prometheus has of its own.
  const serializer = new PrometheusSerializer(undefined, false, undefined, true, true);
  tellFaults(log);
  const provider = new MeterProvider({
    resource,
    readers: [scraped, ...(config.otlpEndpoint === undefined ? [] : [pushTo(config.otlpEndpoint)])],
  });
  const meters = createMeters(provider.getMeter('duepost', version));
  const eventLoop = measureProcess(meters);
  const tracing = openTracing(config, resource);

  return {
    meters,
    traces: tracing && createTraces(tracing.getTracer('duepost', version)),
    async metricsText() {
      const { resourceMetrics, errors } = await scraped.collect();
      for (const error of errors) log.fault('metrics_incomplete', error);
      return serializer.serialize(resourceMetrics);
    },
    async close() {
      eventLoop.disable();
      const sent = Promise.all([provider.shutdown(), tracing?.shutdown()]).catch((error: unknown) =>
        log.warn('telemetry_not_sent', { error: String(error) }),
      );
      // A collector that is away must not hold up the end of a process.
      const given = new AbortController();
      await Promise.race([sent, pause(LONGEST_CLOSE_MS, given.signal)]);
      given.abort();
    },
  };
}

function openTracing(
  { traces, otlpEndpoint, sampleRatio }: Config['telemetry'],
  resource: Resource,
): TracerProvider | undefined {
  if (traces === 'off' || otlpEndpoint === undefined) return undefined;
  return new TracerProvider({
    resource,
    // Whoever calls us with a trace has decided; the rest is decided by the id, alike in every process.
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(sampleRatio) }),
    spanProcessors: [
      new BatchSpanProcessor({ exporter: new OTLPTraceExporter({ url: signalUrl(otlpEndpoint, 'traces') }) }),
    ],
  });
}

function pushTo(endpoint: string): PeriodicExportingMetricReader {
  return new PeriodicExportingMetricReader({
    exporter: new OTLPMetricExporter({ url: signalUrl(endpoint, 'metrics') }),
    exportIntervalMillis: EXPORT_INTERVAL_MS,
  });
}

/** Where a signal goes, as the OTLP specification derives it from the endpoint for all. */
export function signalUrl(endpoint: string, signal: 'metrics' | 'traces'): string {
  return `${endpoint.replace(/\/$/, '')}/v1/${signal}`;
}

/** What OpenTelemetry has to complain about, one line at a time: it must not end up on a console. */
function tellFaults(log: Log): void {
  const tell = (message: string): void => log.warn('telemetry', { message });
  diag.setLogger(
    { error: tell, warn: tell, info: () => undefined, debug: () => undefined, verbose: () => undefined },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}

function measureProcess(meters: Meters): IntervalHistogram {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  meters.source('duepost_event_loop_lag_seconds', () => {
    const seconds = delay.percentile(99) / NANOSECONDS - RESOLUTION_MS / 1000;
    delay.reset();
    return [[[], Math.max(0, seconds)]];
  });
  meters.source('duepost_resident_memory_bytes', () => [[[], process.memoryUsage.rss()]]);
  const labels = [version, process.versions.node, process.versions.tz ?? 'unknown'];
  meters.source('duepost_build_info', () => [[labels, 1]]);
  return delay;
}
