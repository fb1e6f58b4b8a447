import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type Attributes,
  type Context,
  type Span as OtelSpan,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api';

/** Something that may belong to a trace. */
export interface Traced {
  /** W3C Trace Context; undefined: it belongs to none, or nobody here knows. */
  readonly traceParent?: string | undefined;
}

/** A stretch of work within a trace. */
export interface Span {
  /** How others join the trace: W3C Trace Context, version 00. */
  readonly traceParent: string;
  readonly traceId: string;
  /** Begins a part of it, now or so many milliseconds ago. */
  child(name: string, options?: SpanOptions): Span;
  set(attributes: Attributes): void;
  /** What it ended in was no success; `reason` is a word or two without anything that is secret. */
  fail(reason: string): void;
  end(): void;
}

export interface SpanOptions {
  readonly kind?: 'server' | 'client' | 'producer' | 'consumer';
  readonly attributes?: Attributes;
  /** It began that long ago, in milliseconds. */
  readonly agoMs?: number;
}

/** Traces of a process; where they are off there is none of this, and nothing to pay. */
export interface Traces {
  /** Begins a span; `parent` is a traceparent, and what is none begins a trace of its own. */
  begin(name: string, parent: unknown, options?: SpanOptions): Span;
  /** Runs work to which the span is the current one, across awaits. */
  within<T>(span: Span, work: () => T): T;
  /** The traceparent of the current span. */
  current(): string | undefined;
}

const KINDS = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
} as const;

const TRACE_PARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

export function createTraces(tracer: Tracer): Traces {
  const storage = new AsyncLocalStorage<Span>();
  return {
    begin: (name, parent, options = {}) => begin(tracer, { name, context: contextOf(parent), options }),
    within: (span, work) => storage.run(span, work),
    current: () => storage.getStore()?.traceParent,
  };
}

/** A traceparent as it came, or undefined for what is none. */
export function readTraceParent(value: unknown): string | undefined {
  return typeof value === 'string' && isTraceParent(value) ? value : undefined;
}

function begin(
  tracer: Tracer,
  { name, context, options }: { name: string; context: Context; options: SpanOptions },
): Span {
  const span = tracer.startSpan(
    name,
    {
      kind: options.kind === undefined ? SpanKind.INTERNAL : KINDS[options.kind],
      ...(options.attributes === undefined ? {} : { attributes: options.attributes }),
      ...(options.agoMs === undefined ? {} : { startTime: Date.now() - options.agoMs }),
    },
    context,
  );
  return wrap(tracer, span, context);
}

function wrap(tracer: Tracer, span: OtelSpan, context: Context): Span {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return {
    traceId,
    traceParent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`,
    child: (name, options = {}) => begin(tracer, { name, context: trace.setSpan(context, span), options }),
    set: (attributes) => {
      span.setAttributes(attributes);
    },
    fail: (reason) => {
      span.setAttribute('error.type', reason);
      span.setStatus({ code: SpanStatusCode.ERROR, message: reason });
    },
    end: () => span.end(),
  };
}

function contextOf(parent: unknown): Context {
  const [, traceId, spanId, flags] = (typeof parent === 'string' && TRACE_PARENT.exec(parent)) || [];
  if (
    traceId === undefined ||
    spanId === undefined ||
    flags === undefined ||
    !isTraceParent(parent as string)
  )
    return ROOT_CONTEXT;
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED,
    isRemote: true,
  });
}

/** All zeros mean that there is none. */
function isTraceParent(text: string): boolean {
  const [, traceId, spanId] = TRACE_PARENT.exec(text) ?? [];
  return traceId !== undefined && /[^0]/.test(traceId) && spanId !== undefined && /[^0]/.test(spanId);
}
