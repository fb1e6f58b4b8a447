import type { TSchema } from 'typebox';
import { parsePeriod } from '../../domain/calendar/notice.ts';
import { parseIdempotencyKey } from '../../domain/idempotency-key.ts';
import { stringifyJson } from '../../domain/json.ts';
import { Refusal, refuseField } from '../../domain/refusal.ts';
import {
  CancelBody,
  EventBody,
  ReasonBody,
  ReminderBody,
  ReminderPatchBody,
  RescheduleBody,
} from '../../domain/requests/schemas.ts';
import { type Check, requireValid } from '../../domain/requests/validate.ts';
import type { CancelRequest, ReminderReference, RescheduleRequest } from '../timing/reschedule.ts';
import type { EventRequest } from './events.ts';
import type { ReminderRequest } from './reminders.ts';

/** What an entrance knows beside the body. */
export interface RequestContext {
  /** A key that stood outside of the body (a header, the AMQP message id); the body's own wins. */
  readonly outerKey: string | undefined;
  readonly actor: string;
  readonly maxPayloadBytes: number;
}

/** Reads the body of a reminder; throws a Refusal that names each member that is wrong. */
export function readReminder(body: unknown, context: RequestContext): ReminderRequest {
  requireValid(ReminderBody, body, [
    requirePeriods,
    requireOneDeadline,
    requireInstants('deadline_at'),
    requirePayloadSize(context.maxPayloadBytes),
    requireKey(context),
  ]);
  const reminder = body as ReminderBody;
  return {
    idempotencyKey: keyOf(reminder, context),
    contractRef: reminder.contract_ref,
    endpoint: reminder.endpoint,
    renewalDate: reminder.renewal_date,
    noticePeriod: reminder.notice_period,
    jurisdiction: reminder.jurisdiction,
    timeZone: reminder.time_zone,
    deadline: reminder.deadline,
    deadlineAt: readInstant(reminder.deadline_at, '/deadline_at'),
    type: reminder.type,
    payload: reminder.payload,
    actor: context.actor,
  };
}

/** Reads the body of an event; throws a Refusal that names each member that is wrong. */
export function readEvent(body: unknown, context: RequestContext): EventRequest {
  requireValid(EventBody, body, [
    requireInstants('deliver_at', 'deadline_at'),
    requirePayloadSize(context.maxPayloadBytes),
    requireKey(context),
  ]);
  const event = body as EventBody;
  return {
    idempotencyKey: keyOf(event, context),
    type: event.type,
    payload: event.payload,
    endpoint: event.endpoint,
    contractRef: event.contract_ref,
    deliverAt: readInstant(event.deliver_at, '/deliver_at'),
    deadlineAt: readInstant(event.deadline_at, '/deadline_at'),
    actor: context.actor,
  };
}

/** Reads the body of a reschedule; throws a Refusal that names each member that is wrong. */
export function readReschedule(
  body: unknown,
  context: Pick<RequestContext, 'outerKey' | 'actor'>,
): RescheduleRequest {
  requireValid(RescheduleBody, body, [...TIMING_CHECKS, requireReference, requireKey(context)]);
  const { reminder_id, contract_ref, idempotency_key, reason, ...timing } = body as RescheduleBody;
  return {
    ...readTiming(timing),
    reason,
    reference: readReference(reminder_id, contract_ref),
    idempotencyKey: keyOf({ idempotency_key }, context),
    actor: context.actor,
  };
}

/** Reads the new timing of the reminder that is named elsewhere; throws like `readReschedule`. */
export function readReminderPatch(
  reminderId: string,
  body: unknown,
  context: Pick<RequestContext, 'outerKey' | 'actor'>,
): RescheduleRequest {
  requireValid(ReminderPatchBody, body, TIMING_CHECKS);
  const { idempotency_key, reason, ...timing } = body as ReminderPatchBody;
  return {
    ...readTiming(timing),
    reason,
    reference: { reminderId },
    idempotencyKey: idempotency_key ?? context.outerKey,
    actor: context.actor,
  };
}

/** Reads the body of a cancellation; throws a Refusal that names each member that is wrong. */
export function readCancel(
  body: unknown,
  context: Pick<RequestContext, 'outerKey' | 'actor'>,
): CancelRequest {
  requireValid(CancelBody, body, [requireReference, requireKey(context)]);
  const { reminder_id, contract_ref, idempotency_key, reason } = body as CancelBody;
  return {
    reference: readReference(reminder_id, contract_ref),
    reason,
    idempotencyKey: keyOf({ idempotency_key }, context),
    actor: context.actor,
  };
}

/** Reads why the reminder that is named elsewhere is cancelled; throws like `readCancel`. */
export function readReminderCancel(
  reminderId: string,
  body: unknown,
  context: Pick<RequestContext, 'outerKey' | 'actor'>,
): CancelRequest {
  requireValid(ReasonBody, body);
  const { idempotency_key, reason } = body as ReasonBody;
  return {
    reference: { reminderId },
    reason,
    idempotencyKey: idempotency_key ?? context.outerKey,
    actor: context.actor,
  };
}

function readTiming(
  timing: Omit<ReminderPatchBody, 'idempotency_key' | 'reason'>,
): Pick<RescheduleRequest, 'renewalDate' | 'noticePeriod' | 'deadline' | 'deadlineAt'> {
  return {
    renewalDate: timing.renewal_date,
    noticePeriod: timing.notice_period,
    deadline: timing.deadline,
    deadlineAt: readInstant(timing.deadline_at, '/deadline_at'),
  };
}

/** Of a body that names one of them. */
function readReference(reminderId: string | undefined, contractRef: string | undefined): ReminderReference {
  return reminderId === undefined ? { contractRef: contractRef as string } : { reminderId };
}

const requireReference: Check = ({ reminder_id, contract_ref }) => {
  if (reminder_id !== undefined && contract_ref !== undefined) {
    throw refuseField('/contract_ref', 'give reminder_id or contract_ref, not both');
  }
  if (reminder_id === undefined && contract_ref === undefined) {
    throw refuseField('/contract_ref', 'name the reminder by contract_ref or reminder_id');
  }
};

export const requireOneDeadline: Check = ({ deadline, deadline_at }) => {
  if (deadline === undefined || deadline_at === undefined) return;
  throw refuseField('/deadline_at', 'give deadline or deadline_at, not both');
};

const requireTiming: Check = ({ renewal_date, notice_period, deadline, deadline_at }) => {
  if ([renewal_date, notice_period, deadline, deadline_at].some((member) => member !== undefined)) return;
  throw refuseField('/renewal_date', 'give a new renewal_date, notice_period, deadline or deadline_at');
};

/** The form of a period lets through what is too long. */
export const requirePeriods: Check = (members) => {
  for (const name of ['notice_period', 'deadline']) {
    const period = members[name] === undefined ? undefined : parsePeriod(members[name]);
    if (typeof period === 'string') throw refuseField(`/${name}`, `${name} ${period}`);
  }
};

/** RFC 3339 has leap seconds, which no clock here shows. */
function requireInstants(...names: readonly string[]): Check {
  return (members) => {
    for (const name of names) {
      const text = members[name];
      if (typeof text === 'string') readInstant(text, `/${name}`);
    }
  };
}

const TIMING_CHECKS = [requireTiming, requirePeriods, requireOneDeadline, requireInstants('deadline_at')];

/** An instant as RFC 3339 has it; undefined stays undefined. Throws a Refusal for one that does not exist. */
export function readInstant(text: string | undefined, path: string): Date | undefined {
  if (text === undefined) return undefined;
  const instant = new Date(text);
  if (Number.isNaN(instant.getTime())) throw refuseField(path, `${path.slice(1)} is no instant that exists`);
  return instant;
}

/** Reads a body by its schema and what that cannot say. */
export function readBody<T>(schema: TSchema, body: unknown, checks: readonly Check[] = []): T {
  requireValid(schema, body, checks);
  return body as T;
}

function keyOf(
  body: { readonly idempotency_key?: string | undefined },
  { outerKey }: Pick<RequestContext, 'outerKey'>,
): string {
  if (body.idempotency_key !== undefined) return body.idempotency_key;
  if (outerKey !== undefined) return parseIdempotencyKey(outerKey, '/idempotency_key');
  throw new Refusal(
    'idempotency_key_missing',
    'give an idempotency_key, so that a repeated request is recognised',
    [{ path: '/idempotency_key', message: 'idempotency_key is missing' }],
  );
}

function requireKey(context: Pick<RequestContext, 'outerKey'>): Check {
  return (members) => {
    keyOf(members as { readonly idempotency_key?: string }, context);
  };
}

function requirePayloadSize(maxBytes: number): Check {
  return ({ payload }) => {
    if (payload === undefined) return;
    const bytes = Buffer.byteLength(stringifyJson(payload));
    if (bytes <= maxBytes) return;
    throw refuseField('/payload', `payload has ${bytes} bytes, ${maxBytes} are allowed`, 'payload_too_large');
  };
}
