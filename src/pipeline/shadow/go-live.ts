import { DAY_MS } from '../../domain/calendar/dates.ts';
import { sha256Hex } from '../../domain/json.ts';
import { Refusal, refuseField } from '../../domain/refusal.ts';
import {
  type Endpoint,
  findEndpointForUpdate,
  findEndpoints,
  updateEndpoint,
} from '../../store/endpoints.ts';
import { insertOperation } from '../../store/operations.ts';
import { inTransaction, type Pool } from '../../store/pool.ts';
import { findShadowStart } from '../../store/shadow.ts';
import type { Operator } from '../operate/operator.ts';
import {
  reportShadow,
  type ShadowReport,
  type ShadowReportOptions,
  type ShadowReportRequest,
} from './report.ts';
import { shadowReportView, summarize } from './view.ts';

export interface GoLiveRequest {
  /** An endpoint's id or name. */
  readonly endpoint: string;
  /** Undefined: from the day of its first delivery in shadow mode. */
  readonly from: Date | undefined;
  /** Undefined: until the start of today, UTC. */
  readonly to: Date | undefined;
  readonly expected: ShadowReportRequest['expected'];
  /** Whether it is to go live although the report has not passed; needs a reason. */
  readonly force: boolean;
}

export interface WentLive {
  readonly endpoint: Endpoint;
  readonly report: ShadowReport;
}

/**
 * Switches an endpoint from shadow mode to live, if its report passes or somebody insists and says why.
 *
 * What was recorded in shadow has ended and stays so; what is still due goes to the endpoint. Throws a Refusal that says
 * why the report has not passed.
 */
export async function goLive(
  request: GoLiveRequest,
  by: Operator,
  options: Omit<ShadowReportOptions, 'db'> & { readonly pool: Pool },
): Promise<WentLive> {
  const { pool } = options;
  if (request.force && (by.reason ?? '').trim() === '') {
    throw refuseField('/reason', 'to go live against the report needs a reason, for the audit trail');
  }
  const { byReference, now } = await findEndpoints(pool, [request.endpoint]);
  const { endpointId } = requireShadow(byReference.get(request.endpoint), request.endpoint);
  const startedAt = await findShadowStart(pool, endpointId);
  const to = request.to ?? startOfDay(now);
  const from =
    request.from ??
    (startedAt !== undefined && startedAt < to ? startOfDay(startedAt) : new Date(to.getTime() - 7 * DAY_MS));
  const report = await reportShadow(
    { from, to, expected: request.expected, endpoint: endpointId },
    { ...options, db: pool },
  );
  if (!report.passed && !request.force) {
    throw new Refusal(
      'transition_not_allowed',
      `${request.endpoint} stays in shadow mode, its report from ${from.toISOString()} to ${to.toISOString()} has not passed: ${report.reasons.join('; ')}`,
    );
  }
  const endpoint = await inTransaction(pool, async (db) => {
    const before = requireShadow(await findEndpointForUpdate(db, endpointId), request.endpoint);
    await insertOperation(db, {
      subjectId: endpointId,
      event: 'endpoint.went_live',
      actor: by.actor,
      detail: {
        ...(by.reason === undefined ? {} : { reason: by.reason }),
        forced: !report.passed,
        report: {
          from,
          to,
          passed: report.passed,
          reasons: report.reasons,
          summary: summarize(report.rows),
          compared_with_expected: report.hasExpected,
          sha256: sha256Hex(JSON.stringify(shadowReportView(report))),
        },
      },
    });
    return updateEndpoint(db, endpointId, { ...before, mode: 'live' });
  });
  return { endpoint, report };
}

function requireShadow(endpoint: Endpoint | undefined, reference: string): Endpoint {
  if (endpoint === undefined) throw new Refusal('not_found', `there is no endpoint ${reference}`);
  if (endpoint.mode === 'live')
    throw new Refusal('transition_not_allowed', `${endpoint.name} is live already`);
  return endpoint;
}

function startOfDay(at: Date): Date {
  return new Date(Math.floor(at.getTime() / DAY_MS) * DAY_MS);
}
