import { type Refusal, refuseField } from '../../domain/refusal.ts';
import { type Batcher, createBatcher } from '../../runtime/batch.ts';
import { killPoint } from '../../runtime/kill-point.ts';
import type { Traced, Traces } from '../../runtime/traces.ts';
import type { Queryable } from '../../store/pool.ts';
import type { InsertedDelivery } from '../../store/sources.ts';
import { keepTraceParents } from '../../store/trace-parents.ts';
import type { Announcer } from '../announce.ts';
import { type Repeat, resolveFormerNames } from './former-names.ts';

/** What both kinds of acceptance stand on. */
export interface AcceptorOptions {
  readonly db: Queryable;
  readonly announcer: Announcer;
  /** How long a call may take: nothing is accepted that could not be sent in time. */
  readonly timeoutMs: number;
  /** Undefined: none are made. */
  readonly traces?: Traces | undefined;
}

/** The request, with the trace in which it is made. */
function inCurrentTrace<T extends Traced>(request: T, traces: Traces | undefined): T {
  return traces === undefined ? request : { ...request, traceParent: traces.current() };
}

/**
 * Keeps, with the rows that a request made, the trace it was made in.
 *
 * @returns traces by delivery id
 */
async function keepTraces(
  db: Queryable,
  made: Iterable<readonly [request: Traced, deliveryIds: readonly string[]]>,
): Promise<ReadonlyMap<string, string>> {
  const traceParents = new Map<string, string>();
  for (const [{ traceParent }, deliveryIds] of made) {
    if (traceParent !== undefined) for (const id of deliveryIds) traceParents.set(id, traceParent);
  }
  // The rows are committed by now, and a trace is not worth a failure.
  if (traceParents.size > 0) await keepTraceParents(db, traceParents).catch(() => undefined);
  return traceParents;
}

const LANES = 2;
const MAX_BATCH = 250;

/** What a plan of every kind has. */
interface Plan {
  readonly idempotencyKey: string;
  readonly contentSha256: Buffer;
}

/** What all requests of a batch are planned against, read once. */
export interface Planner<Q, P extends Plan> {
  /** The rows that a request asks for; throws a Refusal. */
  plan(request: Q): P;
  /**
   * What matters of a request when it is repeated.
   *
   * @param endpointMeant  the endpoint that its reference meant once and does not mean now
   */
  contentOf(request: Q, endpointMeant?: string): Buffer;
  /** Whether a reference means an endpoint now. */
  knows(reference: string): boolean;
}

/** How one kind of request becomes rows and an answer. */
export interface Kind<Q extends Traced, P extends Plan, S extends Plan, R> {
  readonly name: 'event' | 'reminder';
  readonly prepare: (requests: readonly Q[]) => Promise<Planner<Q, P>>;
  readonly find: (db: Queryable, keys: readonly string[]) => Promise<Map<string, S>>;
  /** Leaves out those whose key is taken; by source id what it inserted. */
  readonly insert: (db: Queryable, plans: readonly P[]) => Promise<Map<string, InsertedDelivery[]>>;
  readonly idOf: (plan: P) => string;
  readonly deliveryIdsOf: (plan: P) => readonly string[];
  /** The answer to what was inserted, from its plan alone; undefined: the rows are read back for it. */
  readonly answerPlan: ((plan: P) => R) | undefined;
  readonly answerStored: (stored: S, duplicate: boolean) => R;
  /** The reference by which a request names its endpoint; undefined: it names none. */
  readonly referenceOf: (request: Q) => string | undefined;
  readonly endpointIdOf: (stored: S) => string | undefined;
}

/** Accepts requests of one kind: rows first, in one transaction a batch, then the wake-ups. */
export interface Acceptor<Q, R> {
  /** Throws a Refusal for a request that is not accepted; nothing of it is stored then. */
  accept(request: Q): Promise<R>;
  close(): Promise<void>;
}

type Outcome<R> = { readonly result: R } | { readonly refusal: unknown };

export function createAcceptor<
  Q extends Traced & Pick<Plan, 'idempotencyKey'>,
  P extends Plan,
  S extends Plan,
  R,
>(options: AcceptorOptions, kind: Kind<Q, P, S, R>): Acceptor<Q, R> {
  const batcher: Batcher<Q, Outcome<R>> = createBatcher({
    lanes: LANES,
    maxBatch: MAX_BATCH,
    run: (requests) => acceptBatch(options, kind, requests),
  });
  return {
    async accept(request) {
      const outcome = await batcher.add(inCurrentTrace(request, options.traces));
      if ('refusal' in outcome) throw outcome.refusal;
      return outcome.result;
    },
    close: () => batcher.close(),
  };
}

/** Of several with one key, whoever inserts first wins; the others find it and compare the content. */
async function acceptBatch<
  Q extends Traced & Pick<Plan, 'idempotencyKey'>,
  P extends Plan,
  S extends Plan,
  R,
>(options: AcceptorOptions, kind: Kind<Q, P, S, R>, requests: readonly Q[]): Promise<Outcome<R>[]> {
  const { db } = options;
  const stored = await kind.find(db, requests.map(keyOf));
  const planner = await kind.prepare(requests);
  const refusals = new Map<Q, unknown>();
  const plans = new Map<Q, P>();
  for (const request of requests) {
    if (stored.has(request.idempotencyKey)) continue;
    try {
      plans.set(request, planner.plan(request));
    } catch (error) {
      refusals.set(request, error);
    }
  }
  const inserted = await insertPlans(options, kind, plans);
  const isAnswered = (plan: P): boolean => kind.answerPlan !== undefined && inserted.has(kind.idOf(plan));
  const unread = [...plans.values()].filter((plan) => !isAnswered(plan));
  for (const [key, found] of await kind.find(db, unread.map(keyOf))) stored.set(key, found);

  const asRepeat = (request: Q): Repeat => {
    const before = stored.get(request.idempotencyKey);
    return { reference: kind.referenceOf(request), endpointId: before && kind.endpointIdOf(before) };
  };
  const meantBy = await resolveFormerNames(db, requests.map(asRepeat), planner.knows);
  return requests.map((request) => {
    if (refusals.has(request)) return { refusal: refusals.get(request) };
    const plan = plans.get(request);
    const isNew = plan !== undefined && inserted.has(kind.idOf(plan));
    if (isNew && kind.answerPlan !== undefined) return { result: kind.answerPlan(plan) };
    const before = stored.get(request.idempotencyKey);
    if (before === undefined) return { refusal: new Error(`${kind.name}: neither inserted nor there`) };
    if (isNew) return { result: kind.answerStored(before, false) };
    const content = planner.contentOf(request, meantBy(asRepeat(request)));
    return content.equals(before.contentSha256)
      ? { result: kind.answerStored(before, true) }
      : { refusal: keyReused(kind.name) };
  });
}

const keyOf = ({ idempotencyKey }: Pick<Plan, 'idempotencyKey'>): string => idempotencyKey;

/** @returns the ids of those whose key was free */
async function insertPlans<Q extends Traced, P extends Plan, S extends Plan, R>(
  { db, announcer }: AcceptorOptions,
  kind: Kind<Q, P, S, R>,
  plans: ReadonlyMap<Q, P>,
): Promise<ReadonlySet<string>> {
  if (plans.size === 0) return new Set();
  killPoint('accept.planned');
  const rows = await insertOnce(() => kind.insert(db, [...plans.values()]));
  killPoint('accept.committed');
  const traceParents = await keepTraces(
    db,
    [...plans].map(([request, plan]) => [request, kind.deliveryIdsOf(plan)]),
  );
  void announcer.announce(
    [...rows.values()]
      .flat()
      .filter((d) => d.state === 'due')
      .map((d) => ({ ...d, attempt: 1, traceParent: traceParents.get(d.deliveryId) })),
  );
  return new Set(rows.keys());
}

/** A batch that met another in a circle is the same batch a moment later; nothing of it was written. */
async function insertOnce<T>(insert: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await insert();
    } catch (error) {
      const code = (error as { code?: unknown }).code;
      if (tries >= 5 || (code !== '40P01' && code !== '40001')) throw error;
    }
  }
}

/** The refusal of other content under a key that is taken. */
function keyReused(kind: 'event' | 'reminder'): Refusal {
  return refuseField(
    '/idempotency_key',
    `this idempotency key belongs to ${kind === 'event' ? 'an event' : 'a reminder'} with other content: repeat it with what it had then; only what is another thing gets a key of its own`,
    'idempotency_key_reused',
  );
}
