import type { Calendars } from '../../domain/calendar/calendars.ts';
import { Refusal, refuseField } from '../../domain/refusal.ts';
import { contentSha256, reminderBody } from '../../domain/requests/body.ts';
import type { Traced } from '../../runtime/traces.ts';
import { type Endpoint, findEndpoints } from '../../store/endpoints.ts';
import { findRemindersByKey, type Reminder } from '../../store/reminders.ts';
import { insertReminders, type NewReminder } from '../../store/sources.ts';
import { newId } from '../new-id.ts';
import { type AcceptorOptions, createAcceptor } from './acceptance.ts';

/** A reminder as a producer hands it in. */
export interface ReminderRequest extends Traced {
  readonly idempotencyKey: string;
  readonly contractRef: string;
  /** An endpoint's id or name. */
  readonly endpoint: string;
  readonly renewalDate: string;
  readonly noticePeriod: string;
  readonly jurisdiction: string;
  readonly timeZone: string | undefined;
  readonly deadline: string | undefined;
  readonly deadlineAt: Date | undefined;
  /** Undefined: `renewal.reminder`. */
  readonly type: string | undefined;
  readonly payload: unknown;
  readonly actor: string;
}

export interface ReminderResult {
  readonly reminder: Reminder;
  readonly duplicate: boolean;
}

const DEFAULT_TYPE = 'renewal.reminder';

export interface ReminderAcceptorOptions extends AcceptorOptions {
  readonly calendars: Calendars;
}

/** Accepts reminders: rows first, in one transaction, then the wake-ups. */
export interface ReminderAcceptor {
  /** Throws a Refusal for a request that is not accepted; nothing of it is stored then. */
  schedule(request: ReminderRequest): Promise<ReminderResult>;
  /** What `schedule` would store, without storing it. Throws like it. */
  plan(
    request: ReminderRequest,
  ): Promise<Pick<NewReminder, 'dueAt' | 'deadlineAt' | 'timeZone' | 'lateStart'>>;
  close(): Promise<void>;
}

export function createReminderAcceptor(options: ReminderAcceptorOptions): ReminderAcceptor {
  const acceptor = createAcceptor<ReminderRequest, NewReminder, Reminder, ReminderResult>(options, {
    name: 'reminder',
    async prepare(requests) {
      const context = await openContext(options, [...new Set(requests.map((r) => r.endpoint))]);
      return {
        plan: (request) => planReminder(request, context),
        contentOf: (request, endpointMeant) => contentOf(request, context, endpointMeant),
        knows: (reference) => context.byReference.has(reference),
      };
    },
    find: findRemindersByKey,
    insert: insertReminders,
    idOf: (plan) => plan.reminderId,
    deliveryIdsOf: (plan) => [plan.delivery.deliveryId],
    answerPlan: undefined,
    answerStored: (reminder, duplicate) => ({ reminder, duplicate }),
    referenceOf: (request) => request.endpoint,
    endpointIdOf: (reminder) => reminder.endpointId,
  });
  return {
    schedule: (request) => acceptor.accept(request),
    plan: async (request) => planReminder(request, await openContext(options, [request.endpoint])),
    close: () => acceptor.close(),
  };
}

interface Context {
  readonly now: Date;
  readonly byReference: ReadonlyMap<string, Endpoint>;
  readonly options: ReminderAcceptorOptions;
}

async function openContext(
  options: ReminderAcceptorOptions,
  references: readonly string[],
): Promise<Context> {
  return { ...(await findEndpoints(options.db, references)), options };
}

function planReminder(request: ReminderRequest, context: Context): NewReminder {
  const { now, byReference, options } = context;
  const endpoint = byReference.get(request.endpoint);
  if (endpoint === undefined) {
    throw refuseField('/endpoint', `there is no endpoint ${request.endpoint}: create it first`, 'not_found');
  }
  if (endpoint.status === 'disabled') {
    const reason = `endpoint ${endpoint.name} is disabled (${endpoint.statusReason ?? 'by an operator'}): resume it first, or name another`;
    throw new Refusal('endpoint_disabled', reason, [{ path: '/endpoint', message: reason }]);
  }
  const due = options.calendars.computeDue(request);
  requireWindow(due, { now, timeoutMs: options.timeoutMs });
  const reminderId = newId('rem');
  const type = request.type ?? DEFAULT_TYPE;
  return {
    reminderId,
    idempotencyKey: request.idempotencyKey,
    contentSha256: contentOf(request, context),
    contractRef: request.contractRef,
    type,
    renewalDate: request.renewalDate,
    noticePeriod: request.noticePeriod,
    jurisdiction: request.jurisdiction,
    ...(request.timeZone === undefined ? {} : { timeZoneGiven: request.timeZone }),
    timeZone: due.timeZone,
    ...(request.deadline === undefined ? {} : { deadlinePeriod: request.deadline }),
    ...(request.deadlineAt === undefined ? {} : { deadlineGivenAt: request.deadlineAt }),
    dueAt: due.dueAt,
    deadlineAt: due.deadlineAt,
    lateStart: due.dueAt < now,
    dueProof: due.proof,
    body: reminderBody({ ...request, type, at: now, deadlineAt: due.deadlineAt }, request.payload),
    delivery: {
      deliveryId: newId('dlv'),
      endpointId: endpoint.endpointId,
      idempotencyKey: request.idempotencyKey,
      dueAt: due.dueAt,
      deadlineAt: due.deadlineAt,
      held: endpoint.status === 'paused',
    },
    actor: request.actor,
    trail: JSON.stringify({
      reminder_id: reminderId,
      idempotency_key: request.idempotencyKey,
      contract_ref: request.contractRef,
      due_at: due.dueAt,
      deadline_at: due.deadlineAt,
      due_proof: due.proof,
    }),
  };
}

/** Refuses what could not be sent in time: due too late for its deadline, or the deadline is upon us. */
export function requireWindow(
  due: { readonly dueAt: Date; readonly deadlineAt: Date },
  { now, timeoutMs }: { readonly now: Date; readonly timeoutMs: number },
): void {
  const latestAt = due.deadlineAt.getTime() - timeoutMs;
  if (due.dueAt.getTime() < latestAt && now.getTime() < latestAt) return;
  const why =
    due.dueAt.getTime() < latestAt
      ? `the deadline ${due.deadlineAt.toISOString()} has passed or leaves no time for a call`
      : `due_at ${due.dueAt.toISOString()} would not lie before the deadline ${due.deadlineAt.toISOString()} less the request timeout`;
  const fault = `${why}: choose a longer notice_period or a later deadline`;
  throw new Refusal('window_closed', fault, [{ path: '/renewal_date', message: fault }]);
}

function contentOf(request: ReminderRequest, { byReference }: Context, endpointMeant?: string): Buffer {
  return contentSha256({
    contract_ref: request.contractRef,
    endpoint: byReference.get(request.endpoint)?.endpointId ?? endpointMeant ?? request.endpoint,
    renewal_date: request.renewalDate,
    notice_period: request.noticePeriod,
    jurisdiction: request.jurisdiction,
    time_zone: request.timeZone ?? null,
    deadline: request.deadline ?? null,
    deadline_at: request.deadlineAt?.toISOString() ?? null,
    type: request.type ?? DEFAULT_TYPE,
    payload: request.payload ?? {},
  });
}
