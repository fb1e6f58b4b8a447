import { setMaxListeners } from 'node:events';
import { startConsumer } from '../broker/consumer.ts';
import { namesOf } from '../broker/topology.ts';
import { openEgress } from '../egress/open.ts';
import { createDeliverer } from '../pipeline/deliver/deliver.ts';
import { createEndpointCache } from '../pipeline/deliver/endpoint-cache.ts';
import { createDeliveryMeter } from '../pipeline/deliver/measure-deliveries.ts';
import { createSettler } from '../pipeline/deliver/settle.ts';
import { createTellDelivered } from '../pipeline/deliver/tell-delivered.ts';
import { createSecretBox } from '../pipeline/secrets.ts';
import { recordInsteadOfSending } from '../pipeline/shadow/sink.ts';
import type { Config } from '../runtime/config.ts';
import { findIgnoredVariables } from '../runtime/ignored-variables.ts';
import type { Log } from '../runtime/log.ts';
import { inScope, type Stop } from '../runtime/scope.ts';
import { requireMigrated } from '../store/migrate.ts';
import { isAlive } from '../store/pool.ts';
import { measureConsumer, measureParts } from './measure.ts';
import { holderName, openEndpointOperator, openParts, type Shared } from './parts.ts';
import { addConsumerProbe, addPartsProbes } from './readiness.ts';

/** How long before the end of the grace calls are aborted, so that their claims can still be handed back. */
const HAND_BACK_MS = 2_000;

/** The worker role: claims what is due, calls the endpoints, settles. */
export function startWorker(config: Config, log: Log, { meters, traces, readiness }: Shared): Promise<Stop> {
  return inScope(async (scope) => {
    const parts = await openParts(scope, config, log);
    await requireMigrated(parts.pool);
    measureParts(meters, parts);
    const names = namesOf(config.broker.prefix);
    addPartsProbes(readiness, parts, names);
    const holder = holderName('worker');
    const stopping = new AbortController();
    const abort = new AbortController();
    // Every wake-up in hand listens; Node takes more than ten for a leak.
    setMaxListeners(0, stopping.signal, abort.signal);
    const egress = scope.own(openEgress({ ...config.egress, maxSockets: config.worker.prefetch }, log), (e) =>
      e.close(),
    );
    const timeoutMs = config.egress.timeoutMs;
    const writeFailures = meters.counter('duepost_outcome_write_failures_total');
    const settler = scope.own(
      createSettler({
        db: parts.pool,
        log,
        holder,
        timeoutMs,
        signal: abort.signal,
        onWriteFailed: () => writeFailures([]),
      }),
      (s) => s.close(),
    );
    const operator = openEndpointOperator(parts, config);
    const deliverer = createDeliverer({
      ...parts,
      db: parts.pool,
      log,
      poison: names.poison,
      endpoints: createEndpointCache(
        parts.pool,
        createSecretBox(config.masterKey, config.previousMasterKeys),
      ),
      settler,
      meter: createDeliveryMeter(meters),
      traces,
      sendTraceParent: config.telemetry.traceparent,
      send: egress.send,
      sendToSink: recordInsteadOfSending,
      shadowAll: config.shadow.all,
      holder,
      timeoutMs,
      leaseMs: config.claim.leaseMs,
      maxPerEndpoint: config.worker.maxPerEndpoint,
      // The rest of what is in hand is for endpoints that answer.
      maxWaiting: Math.ceil(config.worker.prefetch / 4),
      signal: abort.signal,
      stopping: stopping.signal,
      tellDelivered: createTellDelivered({
        db: parts.pool,
        publisher: parts.publisher,
        exchange: names.notifications,
      }),
      onEndpointDisabled: (endpointId) => {
        operator
          .holdPending(endpointId, { actor: holder, reason: 'the endpoint answered 410 Gone' })
          .catch((error: unknown) => log.fault('hold_pending_failed', error, { endpoint_id: endpointId }));
      },
    });
    const consumer = await startConsumer({
      config: config.broker,
      log,
      queue: names.deliveries,
      prefetch: config.worker.prefetch,
      handle: deliverer.handle,
      isHealthy: async () =>
        // While the broker takes nothing, what must be sent on or set aside would only be given back and counted.
        (await isAlive(parts.pool)) && parts.publisher.isReady(),
    });
    measureConsumer(meters, 'deliveries', consumer);
    meters.source('duepost_calls_in_flight', () => [[[], deliverer.callsInFlight()]]);
    scope.onStop(async () => {
      stopping.abort();
      const timer = setTimeout(() => abort.abort(), Math.max(0, config.shutdownMs - HAND_BACK_MS));
      await consumer.stop();
      clearTimeout(timer);
      abort.abort();
    });
    addConsumerProbe(readiness, 'worker', {
      consumer,
      queue: names.deliveries,
      setAside: names.poison,
    });
    const ignored = findIgnoredVariables();
    if (ignored.length > 0) {
      log.warn('variables_ignored', {
        variables: ignored,
        note: 'endpoints are called without a proxy, and their certificates are verified',
      });
    }
    log.info('worker_started', { holder, queue: names.deliveries, egress_client: config.egress.client });
  });
}
