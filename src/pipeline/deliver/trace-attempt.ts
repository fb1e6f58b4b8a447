import type { Traces } from '../../runtime/traces.ts';
import type { Settled } from '../../store/settlement.ts';
import type { Claim } from '../../store/verdict.ts';
import type { Result } from './settle.ts';

/** The part of a trace that one attempt is: claim, call and settle, within the trace that its row belongs to. */
export interface AttemptTrace {
  readonly traceId: string;
  /** What the call's endpoint would join the trace by. */
  readonly traceParent: string;
  called(result: Result): void;
  settled(result: Result, settled: Settled): void;
  /** The result could not be written. */
  failed(): void;
}

export function traceAttempt(
  traces: Traces,
  { claim, askedAtMs }: { readonly claim: Claim; readonly askedAtMs: number },
): AttemptTrace {
  const agoMs = performance.now() - askedAtMs;
  const whole = traces.begin('deliver', claim.traceParent, {
    kind: 'consumer',
    agoMs,
    attributes: {
      'messaging.system': 'rabbitmq',
      'duepost.delivery_id': claim.deliveryId,
      'duepost.endpoint_id': claim.endpointId,
      'duepost.attempt': claim.attempt,
      'duepost.overdue_ms': Math.round(claim.overdueMs),
    },
  });
  whole.child('claim', { agoMs }).end();
  const call = whole.child('call', {
    kind: 'client',
    attributes: { 'http.request.method': 'POST', 'server.address': new URL(claim.url).hostname },
  });
  let settle = call;

  return {
    traceId: whole.traceId,
    traceParent: call.traceParent,
    called({ outcome, status, error }) {
      if (status !== undefined) call.set({ 'http.response.status_code': status });
      if (outcome !== 'delivered') call.fail(error ?? String(status ?? outcome));
      call.end();
      settle = whole.child('settle');
    },
    settled({ outcome }, { state, effect }) {
      settle.end();
      whole.set({ 'duepost.outcome': outcome, 'duepost.state': state, 'duepost.effect': effect });
      if (outcome !== 'delivered') whole.fail(outcome);
      whole.end();
    },
    failed() {
      settle.fail('not_written');
      settle.end();
      whole.fail('not_written');
      whole.end();
    },
  };
}
