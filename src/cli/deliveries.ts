import { type Command, InvalidArgumentError } from 'commander';
import { Refusal } from '../domain/refusal.ts';
import { isState, STATES, type State } from '../domain/state.ts';
import { findEndpointId } from '../pipeline/endpoint-reference.ts';
import { attemptView, deliveryView } from '../pipeline/views.ts';
import { type Delivery, listDeliveries } from '../store/deliveries.ts';
import { type Attempt, findDelivery } from '../store/find-delivery.ts';
import type { Pool } from '../store/pool.ts';
import { readTime, readWhole } from './arguments.ts';
import { more } from './audit/show.ts';
import { type CommonOptions, inContext, withCommonOptions, withExamples } from './context.ts';
import { openDatabase, openDeliveryOperator } from './parts.ts';
import { formatFields, formatTable } from './print.ts';
import { by, withReason } from './reason.ts';

interface ListOptions extends CommonOptions {
  readonly state?: State;
  readonly endpoint?: string;
  readonly contract?: string;
  readonly dueBefore?: Date;
  readonly dueAfter?: Date;
  readonly limit: number;
}

/** `duepost deliveries list|show|retry|cancel`. */
export function addDeliveries(program: Command): void {
  const group = program
    .command('deliveries')
    .description('one reminder or event to one endpoint, with its attempts');
  addList(group);
  addShow(group);
  const retry = withReason(group.command('retry <delivery>'))
    .description(
      'send it again: what waits at once, what is dead or cancelled in a new cycle and not before its time; never what was delivered',
    )
    .option('--force', 'although its deadline has passed')
    .action((deliveryId: string, options: CommonOptions & { reason?: string; force?: boolean }) =>
      inContext(options, async (context) => {
        const { operator, pool } = await openDeliveryOperator(context);
        await operator.retry(deliveryId, { ...by(context, options), force: options.force === true });
        const delivery = await requireDelivery(pool, deliveryId);
        context.print(toJson(delivery), () => `${deliveryId} is ${delivery.delivery.state}`);
      }),
    );
  withExamples(retry, 'duepost deliveries retry dlv_… --reason "the receiver was mended"');
  const cancel = withReason(group.command('cancel <delivery>'))
    .description('take back what waits')
    .action((deliveryId: string, options: CommonOptions & { reason?: string }) =>
      inContext(options, async (context) => {
        const { operator, pool } = await openDeliveryOperator(context);
        await operator.cancel(deliveryId, by(context, options));
        const delivery = await requireDelivery(pool, deliveryId);
        context.print(toJson(delivery), () => `${deliveryId} is ${delivery.delivery.state}`);
      }),
    );
  withExamples(cancel, 'duepost deliveries cancel dlv_… --reason "sent by post already"');
}

function addList(group: Command): void {
  const list = withCommonOptions(group.command('list'))
    .description('deliveries, newest first')
    .option('--state <state>', STATES.join(', '), readState)
    .option('--endpoint <endpoint>', 'to this one, by id or name')
    .option('--contract <ref>', 'about this contract')
    .option('--due-before <time>', 'due before', readTime)
    .option('--due-after <time>', 'due then or later', readTime)
    .option('--limit <n>', 'how many at most', readWhole(1, 100_000), 50)
    .action((options: ListOptions) =>
      inContext(options, async (context) => {
        const pool = await openDatabase(context);
        const filter = {
          state: options.state,
          endpointId: await findEndpointId(pool, options.endpoint, '--endpoint'),
          contractRef: options.contract,
          dueBefore: options.dueBefore,
          dueAfter: options.dueAfter,
        };
        const found = await listDeliveries(pool, filter, { before: undefined, limit: options.limit + 1 });
        const deliveries = found.slice(0, options.limit);
        const hasMore = found.length > deliveries.length;
        const answer = { data: deliveries.map(deliveryView), next_cursor: null, has_more: hasMore };
        context.print(answer, () => formatTable(HEAD, deliveries.map(toRow)) + more(hasMore));
      }),
    );
  withExamples(
    list,
    'duepost deliveries list --state due --due-before 2027-03-01',
    'duepost deliveries list --contract pol-7781',
    'duepost deliveries list --endpoint customer-notices --state held --limit 500',
  );
}

function addShow(group: Command): void {
  const show = withCommonOptions(group.command('show <delivery>'))
    .description('one delivery with its attempts')
    .action((deliveryId: string, options: CommonOptions) =>
      inContext(options, async (context) => {
        const found = await requireDelivery(await openDatabase(context), deliveryId);
        context.print(toJson(found), () => {
          const attempts = formatTable(ATTEMPTS_HEAD, found.attempts.map(toAttemptRow));
          return `${formatFields(deliveryView(found.delivery))}\n\n${attempts}`;
        });
      }),
    );
  withExamples(show, 'duepost deliveries show dlv_…', 'duepost deliveries show dlv_… --json | jq .attempts');
}

interface Found {
  readonly delivery: Delivery;
  readonly attempts: readonly Attempt[];
}

async function requireDelivery(pool: Pool, deliveryId: string): Promise<Found> {
  const found = await findDelivery(pool, deliveryId);
  if (found === undefined) throw new Refusal('not_found', `there is no delivery ${deliveryId}`);
  return found;
}

function readState(text: string): State {
  if (isState(text)) return text;
  throw new InvalidArgumentError(`Known are ${STATES.join(', ')}.`);
}

function toJson({ delivery, attempts }: Found): Record<string, unknown> {
  return { ...deliveryView(delivery), attempts: attempts.map(attemptView) };
}

const HEAD = ['delivery_id', 'state', 'due', 'deadline', 'attempt', 'contract', 'endpoint'];

function toRow(delivery: Delivery): unknown[] {
  const { deliveryId, state, deadReason, dueAt, scheduledAt, deadlineAt, attempt } = delivery;
  return [
    deliveryId,
    deadReason === undefined ? state : `${state} (${deadReason})`,
    dueAt ?? scheduledAt,
    deadlineAt,
    attempt,
    delivery.contractRef,
    delivery.endpointName,
  ];
}

const ATTEMPTS_HEAD = ['attempt', 'outcome', 'status', 'error', 'started', 'ms', 'next due'];

function toAttemptRow(attempt: Attempt): unknown[] {
  return [
    attempt.attempt,
    attempt.outcome ?? 'under way',
    attempt.status,
    attempt.error,
    attempt.startedAt,
    attempt.durationMs,
    attempt.nextDueAt,
  ];
}
