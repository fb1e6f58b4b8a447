import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import { createEventAcceptor, type EventResult } from '../pipeline/accept/events.ts';
import { readEvent } from '../pipeline/accept/read-requests.ts';
import { eventView } from '../pipeline/views.ts';
import { readPayload } from './arguments.ts';
import { type CommonOptions, inContext, withCommonOptions, withExamples } from './context.ts';
import { openAnnouncer, openDatabase } from './parts.ts';
import { present } from './present.ts';
import { formatTable } from './print.ts';

interface PublishOptions extends CommonOptions {
  readonly type: string;
  readonly payload: unknown;
  readonly key?: string;
  readonly endpoint?: string;
  readonly contract?: string;
  readonly deliverAt?: string;
  readonly deadlineAt?: string;
}

/** `duepost publish`: one event. */
export function addPublish(program: Command): void {
  const command = withCommonOptions(program.command('publish'))
    .description('publish an event to every endpoint that wants its type, or to one')
    .requiredOption('--type <type>', 'what happened, such as order.created')
    .requiredOption('--payload <json>', 'any JSON; @file reads it from a file, @- from stdin', readPayload)
    .option(
      '--key <key>',
      'idempotency key: repeated with the same content, it is the same event; random if left out',
    )
    .option('--endpoint <endpoint>', 'only this one, by id or name')
    .option('--contract <ref>', 'the contract it is about')
    .option('--deliver-at <time>', 'not before, as RFC 3339')
    .option('--deadline-at <time>', 'not after, as RFC 3339')
    .action((options: PublishOptions) =>
      inContext(options, async (context) => {
        const body = toBody(options);
        const { actor, config, scope } = context;
        const request = readEvent(body, {
          outerKey: undefined,
          actor,
          maxPayloadBytes: config.limits.maxPayloadBytes,
        });
        const db = await openDatabase(context);
        const announcer = await openAnnouncer(context);
        const acceptor = scope.own(
          createEventAcceptor({ db, announcer, timeoutMs: config.egress.timeoutMs }),
          (a) => a.close(),
        );
        const event = await acceptor.publish(request);
        context.print({ ...eventView(event), idempotency_key: request.idempotencyKey }, () => format(event));
      }),
    );
  withExamples(
    command,
    `duepost publish --type order.created --payload '{"total":12}' --key ord_10241-created`,
    'duepost publish --type report.ready --payload @report.json --endpoint customer-notices',
  );
}

function toBody(options: PublishOptions): Record<string, unknown> {
  return present({
    type: options.type,
    payload: options.payload,
    idempotency_key: options.key ?? `cli-${randomUUID()}`,
    endpoint: options.endpoint,
    contract_ref: options.contract,
    deliver_at: options.deliverAt,
    deadline_at: options.deadlineAt,
  });
}

function format({ eventId, type, duplicate, deliveries }: EventResult): string {
  const head = `${eventId}  ${type}${duplicate ? '  (published before)' : ''}`;
  if (deliveries.length === 0) return `${head}\nno endpoint wants this type`;
  const rows = deliveries.map((d) => [d.delivery_id, d.endpoint_id, d.state]);
  return `${head}\n${formatTable(['delivery_id', 'endpoint_id', 'state'], rows)}`;
}
