import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import { Refusal } from '../../domain/refusal.ts';
import { createEventAcceptor } from '../../pipeline/accept/events.ts';
import { eventView } from '../../pipeline/views.ts';
import { findEndpoint } from '../../store/endpoints.ts';
import { type CommonOptions, inContext, withCommonOptions, withExamples } from '../context.ts';
import { openAnnouncer, openDatabase } from '../parts.ts';

/** As `POST /v1/endpoints/{endpoint}/test` sends. */
const TEST_TYPE = 'duepost.test';

/** `duepost endpoint test`. */
export function addEndpointTest(group: Command): void {
  const command = withCommonOptions(group.command('test <endpoint>'))
    .description(`send an event of type ${TEST_TYPE} to it, signed and retried like any other`)
    .action((reference: string, options: CommonOptions) =>
      inContext(options, async (context) => {
        const { config, scope, actor, print } = context;
        const db = await openDatabase(context);
        const endpoint = await findEndpoint(db, reference);
        if (endpoint === undefined) throw new Refusal('not_found', `there is no endpoint ${reference}`);
        if (endpoint.status === 'disabled') {
          throw new Refusal('endpoint_disabled', `${endpoint.name} is disabled: resume it first`);
        }
        const announcer = await openAnnouncer(context);
        const acceptor = scope.own(
          createEventAcceptor({ db, announcer, timeoutMs: config.egress.timeoutMs }),
          (a) => a.close(),
        );
        const event = await acceptor.publish({
          idempotencyKey: `${TEST_TYPE}:${randomUUID()}`,
          type: TEST_TYPE,
          payload: { endpoint_id: endpoint.endpointId, text: 'A test by an operator of duepost.' },
          endpoint: endpoint.endpointId,
          contractRef: undefined,
          deliverAt: undefined,
          deadlineAt: undefined,
          actor,
        });
        const deliveryId = event.deliveries[0]?.delivery_id;
        print(eventView(event), () => `what becomes of it: duepost deliveries show ${deliveryId}`);
      }),
    );
  withExamples(command, 'duepost endpoint test customer-notices');
}
