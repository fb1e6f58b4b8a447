import type { Log } from '../../runtime/log.ts';
import type { Settled } from '../../store/settlement.ts';
import type { Result } from './settle.ts';

/** One wide line per attempt: no payload, no URL, no secret. */
export function logAttempt(
  log: Log,
  { result, settled, traceId }: { result: Result; settled: Settled; traceId: string | undefined },
): void {
  log.info('attempt', {
    delivery_id: result.deliveryId,
    contract_ref: settled.contractRef,
    endpoint_id: settled.endpointId,
    attempt: result.attempt,
    outcome: result.outcome,
    status: result.status,
    error: result.error,
    duration_ms: result.durationMs,
    effect: settled.effect,
    state: settled.state,
    next_in_ms: settled.remainingMs,
    trace_id: traceId,
  });
}
