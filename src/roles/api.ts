import { namesOf } from '../broker/topology.ts';
import { bundleText } from '../domain/audit/bundle.ts';
import { createSigner } from '../domain/audit/seal.ts';
import { ENVELOPE_BYTES } from '../domain/requests/body.ts';
import type { Api } from '../http/parts.ts';
import { type HttpServer, startHttpServer } from '../http/server.ts';
import { createEventAcceptor } from '../pipeline/accept/events.ts';
import { createReminderAcceptor } from '../pipeline/accept/reminders.ts';
import { exportEvidence } from '../pipeline/evidence/export.ts';
import { createDeliveryOperator } from '../pipeline/operate/deliveries.ts';
import type { Config } from '../runtime/config.ts';
import type { Log } from '../runtime/log.ts';
import { inScope, type Scope, type Stop } from '../runtime/scope.ts';
import { requireMigrated } from '../store/migrate.ts';
import { measureParts } from './measure.ts';
import { openCalendars, openEndpointOperator, openParts, openRescheduler, type Shared } from './parts.ts';
import { addPartsProbes } from './readiness.ts';

export interface HttpRoleOptions extends Shared {
  /** Whether this process serves the API, and not only health and metrics. */
  readonly isApi: boolean;
  /** The text of `/metrics`. */
  readonly metrics: () => Promise<string>;
}

/** Payloads of the largest size in one batch. */
const PAYLOADS_PER_BATCH = 8;

/** What every process serves over HTTP, and the api role where it is among those of the process. */
export async function startHttp(
  config: Config,
  log: Log,
  { isApi, metrics, ...shared }: HttpRoleOptions,
): Promise<{ readonly stop: Stop; readonly url: string }> {
  let server: HttpServer | undefined;
  const stop = await inScope(async (scope) => {
    const api = isApi ? await openApi(scope, config, { log, ...shared }) : undefined;
    server = await scope.own(
      startHttpServer({
        log,
        http: config.http,
        api: api?.parts,
        checkReadiness: () => shared.readiness.check(),
        metrics,
        traces: shared.traces,
      }),
      (s) => s.close(),
    );
    // Before the server waits for what it has in hand.
    if (api !== undefined) scope.onStop(api.endLongOnes);
  });
  return { stop, url: server?.url ?? '' };
}

async function openApi(
  scope: Scope,
  config: Config,
  { log, meters, traces, readiness }: Shared & { readonly log: Log },
): Promise<{ readonly parts: Api; readonly endLongOnes: () => void }> {
  const parts = await openParts(scope, config, log);
  await requireMigrated(parts.pool);
  const names = namesOf(config.broker.prefix);
  addPartsProbes(readiness, parts, names);
  measureParts(meters, parts);
  const { timeoutMs } = config.egress;
  const { maxPayloadBytes } = config.limits;
  const common = { db: parts.pool, announcer: parts.announcer, timeoutMs, traces };
  const calendars = openCalendars(config);
  const abort = new AbortController();
  const { privateKey } = config.sealing;
  const signer = privateKey === undefined ? undefined : createSigner(privateKey);
  return {
    parts: {
      db: parts.pool,
      events: scope.own(createEventAcceptor(common), (a) => a.close()),
      reminders: scope.own(createReminderAcceptor({ ...common, calendars }), (a) => a.close()),
      rescheduler: openRescheduler(parts, config, calendars),
      endpoints: openEndpointOperator(parts, config),
      deliveries: createDeliveryOperator({
        ...parts,
        deliveriesQueue: names.deliveries,
        timeoutMs,
      }),
      calendars,
      exportEvidence: async (deliveryId, actor) =>
        bundleText(await exportEvidence({ deliveryId }, { pool: parts.pool, actor, signer })),
      shadowAll: config.shadow.all,
      maxPayloadBytes,
      maxBodyBytes: maxPayloadBytes + ENVELOPE_BYTES,
      maxBatchBytes: PAYLOADS_PER_BATCH * maxPayloadBytes + ENVELOPE_BYTES,
      rateLimitPerMinute: config.api.rateLimitPerMinute,
      signal: abort.signal,
    },
    endLongOnes: () => abort.abort(),
  };
}
