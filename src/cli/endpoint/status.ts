import type { Command } from 'commander';
import { MAX_SECRET_OVERLAP_SECONDS, SECRET_OVERLAP_SECONDS } from '../../domain/signing.ts';
import type { Announcer } from '../../pipeline/announce.ts';
import type { EndpointOperator } from '../../pipeline/operate/endpoints.ts';
import { endpointView } from '../../pipeline/views.ts';
import { openEndpointOperator } from '../../roles/parts.ts';
import { readWhole } from '../arguments.ts';
import { type Context, inContext, withExamples } from '../context.ts';
import { NOBODY, openAnnouncer, openDatabase } from '../parts.ts';
import { by, type WithReason, withReason } from '../reason.ts';
import { formatEndpoint } from './format.ts';

const HOUR_SECONDS = 3_600;

/** `duepost endpoint pause|resume|rotate-secret|remove`. */
export function addEndpointStatus(group: Command): void {
  const pause = withReason(group.command('pause <endpoint>'))
    .description('send nothing more to it: what waits becomes held')
    .action((reference: string, options: WithReason) =>
      inContext(options, async (context) => {
        const operator = await openOperator(context, NOBODY);
        const endpoint = await operator.pause(reference, by(context, options));
        context.print(endpointView(endpoint), () => formatEndpoint(endpoint));
      }),
    );
  withExamples(pause, 'duepost endpoint pause customer-notices --reason "maintenance until noon"');
  const resume = withReason(group.command('resume <endpoint>'))
    .description('send to it again, also after it was disabled; what was held comes back in due order')
    .action((reference: string, options: WithReason) =>
      inContext(options, async (context) => {
        const operator = await openOperator(context, await openAnnouncer(context));
        const endpoint = await operator.resume(reference, by(context, options));
        context.print(endpointView(endpoint), () => formatEndpoint(endpoint));
      }),
    );
  withExamples(resume, 'duepost endpoint resume customer-notices');
  const rotate = withReason(group.command('rotate-secret <endpoint>'))
    .description('make a new secret, shown once; the old one signs beside it for a while')
    .option(
      '--overlap-hours <n>',
      'how long the old secret goes on signing',
      readWhole(0, MAX_SECRET_OVERLAP_SECONDS / HOUR_SECONDS),
      SECRET_OVERLAP_SECONDS / HOUR_SECONDS,
    )
    .action((reference: string, options: WithReason & { readonly overlapHours: number }) =>
      inContext(options, async (context) => {
        const operator = await openOperator(context, NOBODY);
        const overlapMs = options.overlapHours * HOUR_SECONDS * 1000;
        const { endpoint, secret } = await operator.rotateSecret(reference, overlapMs, by(context, options));
        context.print(
          { ...endpointView(endpoint), secret },
          () => `secret  ${secret}  (shown this once: give it to the receiver)`,
        );
      }),
    );
  withExamples(rotate, 'duepost endpoint rotate-secret customer-notices --overlap-hours 72');
  const remove = withReason(group.command('remove <endpoint>'))
    .description('remove it for good: what waits for it is dead-lettered (endpoint_gone); its evidence stays')
    .action((reference: string, options: WithReason) =>
      inContext(options, async (context) => {
        const operator = await openOperator(context, NOBODY);
        await operator.remove(reference, by(context, options));
        context.print({ removed: reference }, () => `removed ${reference}`);
      }),
    );
  withExamples(remove, 'duepost endpoint remove customer-notices --reason "contract ended"');
}

async function openOperator(context: Context, announcer: Announcer): Promise<EndpointOperator> {
  return openEndpointOperator({ pool: await openDatabase(context), announcer }, context.config);
}
