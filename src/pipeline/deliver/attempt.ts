import { classify } from '../../domain/outcome.ts';
import { type Policy, policyInUse } from '../../domain/policy.ts';
import { decideNext } from '../../domain/retry.ts';
import { parseRetryAfter } from '../../domain/retry-after.ts';
import { planAttempts } from '../../domain/retry-plan.ts';
import { signatureHeaders } from '../../domain/signing.ts';
import type { Answer, Send } from '../../egress/send.ts';
import { version } from '../../runtime/build-info.ts';
import { killPoint } from '../../runtime/kill-point.ts';
import type { Claim } from '../../store/verdict.ts';
import type { CallTarget, EndpointCache } from './endpoint-cache.ts';
import type { Result } from './settle.ts';
import type { AttemptTrace } from './trace-attempt.ts';
import { handBack } from './unknown-outcome.ts';

/** A claim in hand, with the moment at which it was asked for, by the process's monotonic clock. */
export interface HeldClaim {
  readonly claim: Claim;
  readonly askedAtMs: number;
  /** Undefined: no traces are made. */
  readonly traced?: AttemptTrace | undefined;
}

export interface AttemptOptions {
  readonly send: Send;
  /** Stands in for `send` where the endpoint is in shadow mode. */
  readonly sendToSink: Send;
  /** Whether every endpoint is treated as one in shadow mode. */
  readonly shadowAll: boolean;
  readonly timeoutMs: number;
  readonly leaseMs: number;
  /** Whether endpoints are told the trace that a call belongs to. */
  readonly sendTraceParent?: boolean;
  /** Aborts calls when the process may wait no longer. */
  readonly signal: AbortSignal;
}

/** What must be left of the lease when a call ends, to settle it. */
const SETTLE_RESERVE_MS = 1_000;
/** Answers of the way out that speak of this machine and of its limits, not of the receiver. */
const OUR_OWN_FAULTS: readonly (string | undefined)[] = ['local_failure', 'connection_limit'];
/** How long a delivery rests that this machine could not send. */
const OWN_FAULT_DELAY_MS = 5_000;

/**
 * Makes the call that a claim gives the right to, and decides what follows.
 *
 * The call ends before the claim does; where no time is left for one before that or before the deadline, nothing is sent
 * and the claim is handed back.
 */
export async function attemptDelivery(
  { claim, askedAtMs, traced }: HeldClaim,
  known: CallTarget,
  options: AttemptOptions & { readonly endpoints: Pick<EndpointCache, 'refresh'> },
): Promise<Result> {
  // It may be of a state of the database that is gone, since an earlier one was restored.
  const target =
    known.url === claim.url ? known : await options.endpoints.refresh(claim.endpointId).catch(() => known);
  const spentMs = performance.now() - askedAtMs;
  // Cut short by us, a call would be recorded as the receiver's time-out.
  const isHeldTooLong = options.leaseMs - SETTLE_RESERVE_MS - spentMs < options.timeoutMs;
  // Never late: what could not end before the deadline, given the whole timeout, does not start.
  const isLate = claim.marginMs !== undefined && claim.marginMs - spentMs < options.timeoutMs;
  if (isLate || isHeldTooLong || options.signal.aborted) {
    return handBack(claim, { why: 'no time was left for a call' });
  }

  // Changed since the claim: what it is given now is not for where it was.
  if (target.url !== claim.url) return handBack(claim, { why: 'the endpoint has another URL now' });

  const headers = headersOf(claim, target, new Date(claim.claimedAt.getTime() + spentMs));
  if (traced !== undefined && options.sendTraceParent === true) headers['traceparent'] = traced.traceParent;
  const shadow = options.shadowAll || target.mode === 'shadow';
  const send = shadow ? options.sendToSink : options.send;
  const startedAtMs = performance.now();
  const call = send({
    url: claim.url,
    headers,
    body: claim.body,
    timeoutMs: options.timeoutMs,
    signal: options.signal,
    ...(target.tls === undefined ? {} : { tls: target.tls }),
  });
  killPoint('call.started');
  const answer = await call;
  killPoint('call.answered');
  const finishedAtMs = performance.now();
  if (answer.status === undefined && answer.error === 'aborted') {
    return {
      ...handBack(claim, { why: 'the worker stopped', sent: answer.sent }),
      startedAtMs,
      finishedAtMs,
    };
  }
  if (!answer.sent && OUR_OWN_FAULTS.includes(answer.error)) {
    const why = answer.detail ?? 'this machine could not send it';
    return { ...handBack(claim, { why, delayMs: OWN_FAULT_DELAY_MS }), startedAtMs, finishedAtMs };
  }
  const isSuccess = answer.status !== undefined && answer.status >= 200 && answer.status < 300;
  // The policy counts that is in force now, when it is decided; a success needs none.
  const { policy } = isSuccess
    ? target
    : await options.endpoints.refresh(claim.endpointId).catch(() => target);
  const decision = decide(claim, {
    policy,
    answer,
    elapsedMs: finishedAtMs - askedAtMs,
    timeoutMs: options.timeoutMs,
  });
  return {
    ...evidence(claim, answer),
    ...decision.settlement,
    startedAtMs,
    finishedAtMs,
    ...(shadow ? { shadow } : {}),
    trail: trailText(claim, {
      answer,
      headers,
      decision: shadow ? { ...decision.told, ...tellPlan(claim, target.policy, options) } : decision.told,
    }),
  };
}

/** The attempts that a live endpoint would get if it never answered. */
function tellPlan(
  claim: Claim,
  policy: Policy | undefined,
  { timeoutMs }: AttemptOptions,
): { shadow: { attempts_after_ms: number[] } } {
  const { kind, marginMs } = claim;
  const inUse = policyInUse(policy, { kind, hasDeadline: marginMs !== undefined });
  return { shadow: { attempts_after_ms: planAttempts(inUse, { marginMs, timeoutMs }) } };
}

/** The headers of a call (contract section 5); the endpoint's own come first and override nothing. */
function headersOf(claim: Claim, target: CallTarget, at: Date): Record<string, string> {
  const secrets = target.secrets
    .filter((s) => s.expiresAt === undefined || s.expiresAt > at)
    .map((s) => s.key);
  return {
    ...target.headers,
    'Content-Type': 'application/json',
    'User-Agent': `duepost/${version}`,
    'Idempotency-Key': claim.idempotencyKey,
    'X-Delivery-Attempt': String(claim.attempt),
    ...signatureHeaders({
      deliveryId: claim.deliveryId,
      timestampSeconds: Math.floor(at.getTime() / 1000),
      body: claim.body,
      secrets,
    }),
  };
}

interface Decision {
  readonly settlement: Pick<
    Result,
    | 'decision'
    | 'outcome'
    | 'endpointFailed'
    | 'gone'
    | 'retryAfterClamped'
    | 'deadReason'
    | 'delayMs'
    | 'retryAfterSeconds'
  >;
  /** The decision and why, for the trail. */
  readonly told: Record<string, unknown>;
}

function decide(
  claim: Claim,
  input: { policy: Policy | undefined; answer: Answer; elapsedMs: number; timeoutMs: number },
): Decision {
  const { answer, elapsedMs, timeoutMs } = input;
  const policy = policyInUse(input.policy, { kind: claim.kind, hasDeadline: claim.marginMs !== undefined });
  const { outcome, gone } = classify(answer, policy);
  const base = { outcome, gone, endpointFailed: outcome !== 'delivered', retryAfterClamped: false };
  if (outcome === 'delivered') {
    return { settlement: { ...base, decision: 'deliver' }, told: { state: 'delivered' } };
  }
  if (outcome === 'terminal') {
    const deadReason = gone ? 'endpoint_gone' : 'terminal_response';
    return {
      settlement: { ...base, decision: 'give_up', deadReason },
      told: { state: 'dead_lettered', dead_reason: deadReason },
    };
  }
  const retryAfterMs = parseRetryAfter(answer.retryAfter, new Date(claim.claimedAt.getTime() + elapsedMs));
  const asked = retryAfterMs === undefined ? {} : { retryAfterSeconds: Math.ceil(retryAfterMs / 1000) };
  const next = decideNext({
    policy,
    attempt: claim.attempt - claim.attemptBase,
    marginMs: claim.marginMs === undefined ? undefined : claim.marginMs - elapsedMs,
    timeoutMs,
    tookMs: elapsedMs,
    retryAfterMs,
    random: Math.random(),
  });
  if ('giveUp' in next) {
    return {
      settlement: { ...base, ...asked, decision: 'give_up', deadReason: next.giveUp },
      told: { state: 'dead_lettered', dead_reason: next.giveUp, reason: next.reason },
    };
  }
  return {
    settlement: {
      ...base,
      ...asked,
      decision: 'retry',
      delayMs: next.delayMs,
      retryAfterClamped: next.retryAfterClamped,
    },
    told: { state: 'due', delay_ms: next.delayMs, last_call: next.lastCall, reason: next.reason },
  };
}

function evidence(
  claim: Claim,
  answer: Answer,
): Pick<Result, 'deliveryId' | 'attempt' | 'revision' | 'handedBack' | 'durationMs'> &
  Partial<Pick<Result, 'status' | 'error' | 'errorDetail' | 'responseExcerpt'>> {
  return {
    deliveryId: claim.deliveryId,
    attempt: claim.attempt,
    revision: claim.revision,
    handedBack: false,
    durationMs: Math.round(answer.durationMs),
    ...(answer.status === undefined ? {} : { status: answer.status }),
    ...(answer.error === undefined ? {} : { error: answer.error }),
    ...(answer.detail === undefined ? {} : { errorDetail: answer.detail }),
    ...(answer.responseExcerpt === undefined ? {} : { responseExcerpt: answer.responseExcerpt }),
  };
}

const OUR_HEADERS = new Set([
  'Content-Type',
  'User-Agent',
  'Idempotency-Key',
  'X-Delivery-Attempt',
  'X-Signature-256',
  'webhook-id',
  'webhook-timestamp',
  'webhook-signature',
  'traceparent',
]);

/** Headers as they are kept: the endpoint's own may be credentials, so of those only the names. */
function withoutValues(headers: Readonly<Record<string, string>>): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name in headers) kept[name] = OUR_HEADERS.has(name) ? (headers[name] as string) : '(not kept)';
  return kept;
}

/** What was sent and seen. */
function trailText(
  claim: Claim,
  { answer, headers, decision }: { answer: Answer; headers: Record<string, string>; decision: object },
): string {
  return JSON.stringify({
    attempt: claim.attempt,
    cycle: claim.cycle,
    claimed_at: claim.claimedAt,
    host_clock_offset_ms: claim.hostClockOffsetMs,
    url: claim.url,
    body_sha256: claim.bodySha256.toString('hex'),
    request_headers: withoutValues(headers),
    sent: answer.sent,
    remote_address: answer.remoteAddress,
    certificate_sha256: answer.certificateSha256,
    status: answer.status,
    error: answer.error,
    error_detail: answer.detail,
    retry_after: answer.retryAfter,
    response_headers: answer.responseHeaders,
    response_body_sha256: answer.responseBodySha256,
    response_excerpt: answer.responseExcerpt,
    duration_ms: Math.round(answer.durationMs),
    decision,
  });
}
