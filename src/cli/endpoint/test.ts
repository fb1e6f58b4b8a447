import type { Command } from 'commander';
import { createEventAcceptor } from '../../pipeline/accept/events.ts';
import { TEST_TYPE, testEndpoint } from '../../pipeline/operate/test-endpoint.ts';
import { eventView } from '../../pipeline/views.ts';
import { type CommonOptions, inContext, withCommonOptions, withExamples } from '../context.ts';
import { openAnnouncer, openDatabase } from '../parts.ts';

/** `duepost endpoint test`. */
export function addEndpointTest(group: Command): void {
  const command = withCommonOptions(group.command('test <endpoint>'))
    .description(`send an event of type ${TEST_TYPE} to it, signed and retried like any other`)
    .action((reference: string, options: CommonOptions) =>
      inContext(options, async (context) => {
        const { config, scope, actor, print } = context;
        const db = await openDatabase(context);
        const announcer = await openAnnouncer(context);
        const events = scope.own(
          createEventAcceptor({ db, announcer, timeoutMs: config.egress.timeoutMs }),
          (acceptor) => acceptor.close(),
        );
        const event = await testEndpoint(
          { db, events },
          { endpoint: reference, idempotencyKey: undefined, actor },
        );
        const deliveryId = event.deliveries[0]?.delivery_id;
        print(eventView(event), () => `what becomes of it: duepost deliveries show ${deliveryId}`);
      }),
    );
  withExamples(command, 'duepost endpoint test customer-notices');
}
