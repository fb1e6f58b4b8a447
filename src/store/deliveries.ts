import { fromStates, isFinal, type State } from '../domain/state.ts';
import { clockAfter } from './clock.ts';
import { type Condition, chooseConditions } from './conditions.ts';
import type { EndpointStatus } from './endpoints.ts';
import { kindOf } from './kind.ts';
import type { Queryable } from './pool.ts';
import { queryList } from './query-list.ts';

/** A delivery as people look at it. */
export interface Delivery {
  readonly deliveryId: string;
  readonly reminderId: string | undefined;
  readonly eventId: string | undefined;
  readonly endpointId: string;
  readonly endpointName: string;
  readonly endpointStatus: EndpointStatus;
  /** The endpoint's policy as JSON; undefined: the default of what is sent. */
  readonly policy: unknown;
  readonly contractRef: string | undefined;
  readonly idempotencyKey: string;
  readonly state: State;
  /** Undefined: it has ended. */
  readonly dueAt: Date | undefined;
  readonly scheduledAt: Date;
  readonly deadlineAt: Date | undefined;
  readonly attempt: number;
  /** The attempt number at which this cycle began. */
  readonly attemptBase: number;
  readonly manualAttempts: number;
  readonly cycle: number;
  readonly revision: number;
  readonly deadReason: string | undefined;
  readonly claimedBy: string | undefined;
  readonly claimExpiresAt: Date | undefined;
  readonly createdAt: Date;
  readonly endedAt: Date | undefined;
}

export interface DeliveryRow {
  readonly delivery_id: string;
  readonly reminder_id: string | null;
  readonly event_id: string | null;
  readonly endpoint_id: string;
  readonly endpoint_name: string;
  readonly endpoint_status: EndpointStatus;
  readonly policy: unknown;
  readonly contract_ref: string | null;
  readonly idempotency_key: string;
  readonly state: State;
  readonly due_at: Date | null;
  readonly scheduled_at: Date;
  readonly deadline_at: Date | null;
  readonly attempt: number;
  readonly attempt_base: number;
  readonly manual_attempts: number;
  readonly cycle: number;
  readonly revision: number;
  readonly dead_reason: string | null;
  readonly claimed_by: string | null;
  readonly claim_expires_at: Date | null;
  readonly created_at: Date;
  readonly ended_at: Date | null;
}

/** Of `delivery d join endpoint e`. */
export const DELIVERY_COLUMNS = `d.delivery_id, d.reminder_id, d.event_id, d.endpoint_id, e.name as endpoint_name,
             e.status as endpoint_status, e.policy, d.contract_ref, d.idempotency_key, d.state, d.due_at,
             d.scheduled_at, d.deadline_at, d.attempt, d.attempt_base, d.manual_attempts, d.cycle, d.revision,
             d.dead_reason, d.claimed_by, d.claim_expires_at, d.created_at, d.ended_at`;

export function toDelivery(row: DeliveryRow): Delivery {
  return {
    deliveryId: row.delivery_id,
    reminderId: row.reminder_id ?? undefined,
    eventId: row.event_id ?? undefined,
    endpointId: row.endpoint_id,
    endpointName: row.endpoint_name,
    endpointStatus: row.endpoint_status,
    policy: row.policy ?? undefined,
    contractRef: row.contract_ref ?? undefined,
    idempotencyKey: row.idempotency_key,
    state: row.state,
    dueAt: row.due_at ?? undefined,
    scheduledAt: row.scheduled_at,
    deadlineAt: row.deadline_at ?? undefined,
    attempt: row.attempt,
    attemptBase: row.attempt_base,
    manualAttempts: row.manual_attempts,
    cycle: row.cycle,
    revision: row.revision,
    deadReason: row.dead_reason ?? undefined,
    claimedBy: row.claimed_by ?? undefined,
    claimExpiresAt: row.claim_expires_at ?? undefined,
    createdAt: row.created_at,
    endedAt: row.ended_at ?? undefined,
  };
}

/** Which deliveries; what is undefined does not matter. */
export interface DeliveryFilter {
  readonly state?: State | undefined;
  readonly endpointId?: string | undefined;
  readonly contractRef?: string | undefined;
  /** From this instant on. */
  readonly dueAfter?: Date | undefined;
  /** Before this instant. */
  readonly dueBefore?: Date | undefined;
}

/** What a list of deliveries can be narrowed by so that an index serves. */
export const NARROWING = 'contract or endpoint';

/** Deliveries have no index on the contract, which would cost every insert; their sources have one. */
export const IDS_OF_CONTRACT = (contractRef: string): string => `
           select r.delivery_id
             from reminder r
            where r.contract_ref = ${contractRef}
            union all
           select a.entry ->> 'delivery_id'
             from event v
            cross join jsonb_array_elements(v.answer) as a (entry)
            where v.contract_ref = ${contractRef}`;

function conditionsOf({ state, endpointId, contractRef, dueAfter, dueBefore }: DeliveryFilter): Condition[] {
  const isOpen = state !== undefined && !isFinal(state);
  // What is open, and what is dead, is found by an index that holds nothing else.
  const kind = isOpen
    ? 'd.due_at is not null and '
    : state === 'dead_lettered'
      ? 'd.dead_reason is not null and '
      : '';
  const due = isOpen ? 'd.due_at' : 'coalesce(d.due_at, d.scheduled_at)';
  return [
    { name: 'endpoint', value: endpointId, text: (p) => `d.endpoint_id = ${p}` },
    { name: 'contract', value: contractRef, text: (p) => `d.delivery_id in (${IDS_OF_CONTRACT(p)})` },
    { name: isOpen ? 'open' : (state ?? 'any'), value: state, text: (p) => `${kind}d.state = ${p}` },
    // With one bound alone the planner takes a third of the whole table for what an index of open ones holds.
    {
      name: isOpen ? 'open_from' : 'from',
      value: dueAfter,
      text: (p) => `${due} >= ${p} and ${due} <= 'infinity'`,
    },
    {
      name: isOpen ? 'open_until' : 'until',
      value: dueBefore,
      text: (p) => `${due} < ${p} and ${due} >= '-infinity'`,
    },
  ];
}

/** Deliveries, newest first, from before `before` (an id; undefined: from the newest). */
export async function listDeliveries(
  db: Queryable,
  filter: DeliveryFilter,
  page: { readonly before: string | undefined; readonly limit: number },
): Promise<Delivery[]> {
  const asked = chooseConditions(
    [{ name: 'before', value: page.before, text: (p) => `d.delivery_id < ${p}` }, ...conditionsOf(filter)],
    [page.limit],
  );
  const rows = await queryList<DeliveryRow>(db, {
    narrowing: NARROWING,
    name: `list_deliveries${asked.suffix}`,
    text: `
      select ${DELIVERY_COLUMNS}
        from delivery d
        join endpoint e on e.endpoint_id = d.endpoint_id
       where ${asked.where}
       order by d.delivery_id desc
       limit $1`,
    values: asked.values,
  });
  return rows.map(toDelivery);
}

/** The states of deliveries by id. */
export async function listDeliveryStates(
  db: Queryable,
  deliveryIds: readonly string[],
): Promise<Map<string, State>> {
  const result = await db.query<{ delivery_id: string; state: State }>({
    name: 'list_delivery_states',
    text: `
      select delivery_id, state
        from delivery
       where delivery_id = any($1)`,
    values: [deliveryIds],
  });
  return new Map(result.rows.map((row) => [row.delivery_id, row.state]));
}

/**
 * Makes a delivery that waits for its due time due at once, with a trail entry; the attempt that follows is one more
 * than the policy gives.
 *
 * @returns the attempt to ask for; undefined: it does not wait for a time that is still to come
 */
export async function hastenDelivery(
  db: Queryable,
  request: { readonly deliveryId: string; readonly actor: string; readonly trail: string },
): Promise<{ readonly contractRef: string | undefined; readonly attempt: number } | undefined> {
  const result = await db.query<{ contract_ref: string | null; attempt: number }>({
    name: 'hasten_delivery',
    text: `
      with locked as (
        select d.delivery_id
          from delivery d
         where d.delivery_id = $1
           and d.state = any($4)
           -- As in a claim: this one row is found by its id, and not among all that is due later.
           and coalesce(d.due_at, '-infinity') > now()
           for no key update
      ), ${clockAfter('locked')}, hastened as (
        update delivery d
           set due_at = c.at,
               manual_attempts = d.manual_attempts + 1,
               trail_length = d.trail_length + 1,
               trail_sha256 = trail_hash(d.trail_sha256, d.trail_length + 1, c.at, 'retry_now', $2, $3)
          from locked l, clock c
         where d.delivery_id = l.delivery_id
        returning d.delivery_id, d.reminder_id, d.contract_ref, d.attempt, d.trail_length, d.trail_sha256, c.at
      ), told as (
        insert into trail (kind, delivery_id, entry, at, event, actor, detail, sha256)
        select ${kindOf('h')},
               h.delivery_id, h.trail_length, h.at, 'retry_now', $2, $3, h.trail_sha256
          from hastened h
      )
      select contract_ref, attempt + 1 as attempt
        from hastened`,
    values: [request.deliveryId, request.actor, request.trail, fromStates('claim')],
  });
  const row = result.rows[0];
  return row && { contractRef: row.contract_ref ?? undefined, attempt: row.attempt };
}
