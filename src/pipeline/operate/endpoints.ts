import { randomBytes } from 'node:crypto';
import { parseEndpointHeaders } from '../../domain/endpoint-headers.ts';
import { parsePolicy } from '../../domain/policy.ts';
import { Refusal, refuseField } from '../../domain/refusal.ts';
import type { EndpointBody, EndpointPatchBody } from '../../domain/requests/schemas.ts';
import { formatSecret, parseSecret } from '../../domain/signing.ts';
import { fromStates } from '../../domain/state.ts';
import { parseTarget, type TargetRules } from '../../domain/target.ts';
import { listPendingOfEndpoint, type Position } from '../../store/due.ts';
import { insertSecret } from '../../store/endpoint-secrets.ts';
import {
  type Endpoint,
  type EndpointState,
  findEndpointForUpdate,
  insertEndpoint,
  markEndpointDeleted,
  updateEndpoint,
} from '../../store/endpoints.ts';
import { moveDeliveries } from '../../store/moves.ts';
import { insertNotice } from '../../store/notices.ts';
import { insertOperation } from '../../store/operations.ts';
import { inTransaction, type Pool, type Queryable } from '../../store/pool.ts';
import type { Announcer } from '../announce.ts';
import { newId } from '../new-id.ts';
import type { SecretBox } from '../secrets.ts';
import { policyOf } from './endpoint-policy.ts';
import { changeTls } from './endpoint-tls.ts';
import type { Operator } from './operator.ts';

export interface EndpointOperatorOptions {
  readonly pool: Pool;
  readonly announcer: Announcer;
  readonly box: SecretBox;
  readonly targetRules: TargetRules;
  readonly timeoutMs: number;
}

export interface WithSecret {
  readonly endpoint: Endpoint;
  /** Shown once. */
  readonly secret: string;
}

/** What people do to endpoints; each call throws a Refusal for what it will not do. */
export interface EndpointOperator {
  create(body: EndpointBody, by: Operator): Promise<WithSecret>;
  patch(reference: string, patch: EndpointPatchBody, by: Operator): Promise<Endpoint>;
  /** What waits for it becomes `held`; one that is disabled stays so. */
  pause(reference: string, by: Operator): Promise<Endpoint>;
  /** Also enables again what was disabled; what was held comes back in due order. */
  resume(reference: string, by: Operator): Promise<Endpoint>;
  /** @param overlapMs  how long the old secret goes on signing beside the new one */
  rotateSecret(reference: string, overlapMs: number, by: Operator): Promise<WithSecret>;
  /** What waits for it is dead-lettered: `endpoint_gone`. */
  remove(reference: string, by: Operator): Promise<void>;
  /** Holds what still is `due` at an endpoint that is paused or disabled; in pages, safe to repeat. */
  holdPending(endpointId: string, by: Operator): Promise<number>;
}

/** Living deliveries of all endpoints that one statement looks at. */
const LOOK_AT = 5_000;
/** Deliveries that one statement moves. */
const PAGE = 500;
const SECRET_BYTES = 32;

export function createEndpointOperator(options: EndpointOperatorOptions): EndpointOperator {
  const { pool, announcer, box, targetRules, timeoutMs } = options;

  /** Changes an endpoint under its lock, with its operation and, if others are to know, its notice. */
  function change(
    reference: string,
    by: Operator,
    plan: (
      endpoint: Endpoint,
      db: Queryable,
    ) => Promise<{ to: Endpoint; event: string; detail?: object; notice?: string }>,
  ): Promise<Endpoint> {
    return inTransaction(pool, async (db) => {
      const endpoint = await findEndpointForUpdate(db, reference);
      if (endpoint === undefined) throw new Refusal('not_found', `there is no endpoint ${reference}`);
      const { to, event, detail, notice } = await plan(endpoint, db);
      await insertOperation(db, {
        subjectId: endpoint.endpointId,
        event,
        actor: by.actor,
        detail: { ...detail, ...(by.reason === undefined ? {} : { reason: by.reason }) },
      });
      if (notice !== undefined)
        await insertNotice(db, { name: notice, body: { endpoint_id: endpoint.endpointId } });
      return to;
    });
  }

  /** In pages, one walk in due order; what changes behind it is for the claim and the reconciler to deal with. */
  async function moveAll(
    endpointId: string,
    move: 'hold' | 'release' | 'abandon',
    by: Operator,
  ): Promise<number> {
    const trail = JSON.stringify({
      endpoint_id: endpointId,
      reason: by.reason ?? `the endpoint's status changed`,
    });
    let count = 0;
    let after: Position | undefined;
    do {
      const states = fromStates(move);
      const { deliveryIds, next } = await listPendingOfEndpoint(pool, {
        endpointId,
        states,
        after,
        limit: LOOK_AT,
      });
      for (let i = 0; i < deliveryIds.length; i += PAGE) {
        const moved = await moveDeliveries(pool, {
          move,
          deliveryIds: deliveryIds.slice(i, i + PAGE),
          actor: by.actor,
          trail,
          timeoutMs,
        });
        if (move === 'release') {
          // One page in the broker at a time: resumption is no stampede.
          await announcer.announce(moved);
        }
        count += moved.length;
      }
      after = next;
    } while (after !== undefined);
    return count;
  }

  return {
    async create(body, by) {
      parseTarget(body.url, targetRules);
      const secret = body.secret === undefined ? randomBytes(SECRET_BYTES) : parseSecret(body.secret);
      const endpointId = newId('ep');
      const endpoint = await inTransaction(pool, async (db) => {
        const inserted = await insertEndpoint(db, {
          endpointId,
          name: body.name,
          url: body.url,
          mode: body.mode ?? 'live',
          eventTypes: body.event_types ?? ['*'],
          policy: policyOf(body),
          maxInFlight: body.max_in_flight ?? undefined,
          headers: parseEndpointHeaders(body.headers ?? {}),
        });
        if (inserted === undefined) throw nameTaken(body.name);
        await insertSecret(db, { endpointId, ciphertext: box.seal(endpointId, secret), overlapMs: 0 });
        const created = await changeTls(db, inserted, { body: body.tls ?? undefined, box });
        await insertOperation(db, {
          subjectId: endpointId,
          event: 'endpoint.created',
          actor: by.actor,
          detail: { ...describe(created) },
        });
        return created;
      });
      return { endpoint, secret: formatSecret(secret) };
    },

    async patch(reference, patch, by) {
      try {
        return await change(reference, by, async (endpoint, db) => {
          if (patch.url !== undefined) parseTarget(patch.url, targetRules);
          const updated = await updateEndpoint(db, endpoint.endpointId, patched(endpoint, patch));
          const to = await changeTls(db, updated, { body: patch.tls, box });
          return { to, event: 'endpoint.changed', detail: { from: describe(endpoint), to: describe(to) } };
        });
      } catch (error) {
        const isDuplicate = (error as { code?: unknown }).code === '23505';
        throw isDuplicate && patch.name !== undefined ? nameTaken(patch.name) : error;
      }
    },

    async pause(reference, by) {
      const endpoint = await change(reference, by, async (before, db) => {
        requireNotDisabled(before);
        return {
          to: await updateEndpoint(db, before.endpointId, {
            ...before,
            status: 'paused',
            statusReason: by.reason,
          }),
          event: 'endpoint.paused',
          notice: 'endpoint.paused',
        };
      });
      await moveAll(endpoint.endpointId, 'hold', by);
      return endpoint;
    },

    async resume(reference, by) {
      const endpoint = await change(reference, by, async (before, db) => ({
        to: await updateEndpoint(db, before.endpointId, {
          ...before,
          status: 'active',
          statusReason: undefined,
        }),
        event: 'endpoint.resumed',
        notice: 'endpoint.resumed',
      }));
      await moveAll(endpoint.endpointId, 'release', by);
      return endpoint;
    },

    async rotateSecret(reference, overlapMs, by) {
      const secret = randomBytes(SECRET_BYTES);
      const endpoint = await change(reference, by, async (before, db) => {
        await insertSecret(db, {
          endpointId: before.endpointId,
          ciphertext: box.seal(before.endpointId, secret),
          overlapMs,
        });
        return { to: before, event: 'endpoint.secret_rotated', detail: { overlap_ms: overlapMs } };
      });
      return { endpoint, secret: formatSecret(secret) };
    },

    async remove(reference, by) {
      const endpoint = await change(reference, by, async (before, db) => {
        await markEndpointDeleted(db, before.endpointId);
        return { to: before, event: 'endpoint.deleted', notice: 'endpoint.disabled' };
      });
      await moveAll(endpoint.endpointId, 'abandon', by);
    },

    holdPending: (endpointId, by) => moveAll(endpointId, 'hold', by),
  };
}

/** A paused endpoint takes new reminders, and nothing would say any more why it was disabled. */
function requireNotDisabled({ name, status, statusReason }: Endpoint): void {
  if (status !== 'disabled') return;
  throw new Refusal(
    'transition_not_allowed',
    `endpoint ${name} is disabled (${statusReason ?? 'by an operator'}), and nothing is sent to it: only resume changes that`,
  );
}

function nameTaken(name: string): Refusal {
  return refuseField('/name', `an endpoint named ${name} exists: choose another name`, 'name_taken');
}

function patched(before: Endpoint, patch: EndpointPatchBody): EndpointState {
  const touchesPolicy = 'policy' in patch || 'retry_schedule' in patch || 'max_attempts' in patch;
  const policyBefore = before.policy === undefined ? undefined : parsePolicy(before.policy);
  return {
    name: patch.name ?? before.name,
    url: patch.url ?? before.url,
    mode: patch.mode ?? before.mode,
    eventTypes: patch.event_types ?? before.eventTypes,
    policy: touchesPolicy ? policyOf(patch, policyBefore) : before.policy,
    maxInFlight: patch.max_in_flight === undefined ? before.maxInFlight : (patch.max_in_flight ?? undefined),
    headers: parseEndpointHeaders(merged(before.headers, patch.headers ?? {})),
    status: before.status,
    statusReason: before.statusReason,
  };
}

function merged(
  before: Readonly<Record<string, string>>,
  patch: Readonly<Record<string, string | null>>,
): Record<string, string> {
  const result: Record<string, string> = { ...before };
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else result[name] = value;
  }
  return result;
}

/** What the trail keeps of an endpoint; values of its headers may be credentials. */
function describe(endpoint: Endpoint): Record<string, unknown> {
  return {
    name: endpoint.name,
    url: endpoint.url,
    mode: endpoint.mode,
    event_types: endpoint.eventTypes,
    policy: endpoint.policy ?? null,
    max_in_flight: endpoint.maxInFlight ?? null,
    header_names: Object.keys(endpoint.headers),
    tls: endpoint.tls ?? null,
  };
}
