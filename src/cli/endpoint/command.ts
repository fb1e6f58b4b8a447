import type { Command } from 'commander';
import { Refusal } from '../../domain/refusal.ts';
import { endpointView } from '../../pipeline/views.ts';
import { type Endpoint, findEndpoint, listEndpoints } from '../../store/endpoints.ts';
import type { Pool } from '../../store/pool.ts';
import { type CommonOptions, inContext, withCommonOptions, withExamples } from '../context.ts';
import { openDatabase } from '../parts.ts';
import { formatTable } from '../print.ts';
import { addEndpointChanges } from './change.ts';
import { formatEndpoint } from './format.ts';
import { addEndpointGoLive } from './go-live.ts';
import { addEndpointReencrypt } from './reencrypt.ts';
import { addEndpointStatus } from './status.ts';
import { addEndpointTest } from './test.ts';

const PAGE = 500;

/** `duepost endpoint …`: the destinations. */
export function addEndpoint(program: Command): void {
  const group = program.command('endpoint').description('destinations: URL, secret, retry policy, status');
  addEndpointChanges(group);
  addEndpointStatus(group);
  addEndpointReencrypt(group);
  addEndpointGoLive(group);
  addEndpointTest(group);
  const list = withCommonOptions(group.command('list'))
    .description('all endpoints, in the order they were made')
    .action((options: CommonOptions) =>
      inContext(options, async (context) => {
        const endpoints = await listAll(await openDatabase(context));
        const answer = { data: endpoints.map((e) => endpointView(e)), next_cursor: null, has_more: false };
        context.print(answer, () => formatTable(HEAD, endpoints.map(toRow)));
      }),
    );
  withExamples(list, 'duepost endpoint list', "duepost endpoint list --json | jq '.data[].name'");
  const show = withCommonOptions(group.command('show <endpoint>'))
    .description('one endpoint, by id or name')
    .action((reference: string, options: CommonOptions) =>
      inContext(options, async (context) => {
        const endpoint = await findEndpoint(await openDatabase(context), reference);
        if (endpoint === undefined) throw new Refusal('not_found', `there is no endpoint ${reference}`);
        context.print(endpointView(endpoint), () => formatEndpoint(endpoint));
      }),
    );
  withExamples(show, 'duepost endpoint show customer-notices');
}

const HEAD = ['endpoint_id', 'name', 'status', 'mode', 'failures', 'event types', 'url'];

function toRow(endpoint: Endpoint): unknown[] {
  const { endpointId, name, status, mode, consecutiveFailures, eventTypes, url } = endpoint;
  return [endpointId, name, status, mode, consecutiveFailures, eventTypes, url];
}

async function listAll(pool: Pool): Promise<Endpoint[]> {
  const all: Endpoint[] = [];
  for (;;) {
    const page = await listEndpoints(pool, { after: all.at(-1)?.endpointId ?? '', limit: PAGE });
    all.push(...page);
    if (page.length < PAGE) return all;
  }
}
