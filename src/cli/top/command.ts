import type { Command } from 'commander';
import { BrokerRefusal } from '../../broker/connection.ts';
import { connectPublisher, type Publisher } from '../../broker/publisher.ts';
import { namesOf } from '../../broker/topology.ts';
import { type OverviewTaker, openOverviews } from '../../pipeline/reconcile/overview.ts';
import { pause } from '../../runtime/backoff.ts';
import type { Log } from '../../runtime/log.ts';
import { complain } from '../complain.ts';
import { type CommonOptions, type Context, inContext, withCommonOptions, withExamples } from '../context.ts';
import { openDatabase } from '../parts.ts';
import { formatOverview, overviewView } from './view.ts';
import { watchOverviews } from './watch.ts';

const REFRESH_MS = 2_000;
/** The database's own counters are up to a second behind. */
const FIRST_WAIT_MS = 1_000;

/** The other screen of a terminal, without a cursor, so that what was there comes back. */
const ENTER = '\u001b[?1049h\u001b[?25l';
const LEAVE = '\u001b[?25h\u001b[?1049l';
const REDRAW = '\u001b[H\u001b[J';

/** `duepost top`. */
export function addTop(program: Command): void {
  const command = withCommonOptions(program.command('top'))
    .description('watch deliveries, queues, endpoints in trouble and what is at risk; Ctrl-C ends it')
    .option('--once', 'look once')
    .action((options: CommonOptions & { readonly once?: boolean }) =>
      inContext(options, async (context) => {
        const overviews = await openOverviews({
          pool: await openDatabase(context),
          publisher: await openPublisher(context),
          names: namesOf(context.config.broker.prefix),
        });
        await pause(FIRST_WAIT_MS);
        if (options.once === true) await show(context, overviews);
        else await watch(context, overviews);
      }),
    );
  withExamples(command, 'duepost top', 'duepost top --once --json | jq .at_risk_next');
}

async function show({ print }: Context, overviews: OverviewTaker): Promise<void> {
  const overview = await overviews.take();
  print(overviewView(overview), () => formatOverview(overview));
}

async function watch(context: Context, overviews: OverviewTaker): Promise<void> {
  const interrupted = new AbortController();
  process.once('SIGINT', () => interrupted.abort());
  process.once('SIGTERM', () => interrupted.abort());
  // Nobody looks any more.
  process.stdout.once('error', () => interrupted.abort());
  const isScreen = process.stdout.isTTY && !context.json;
  if (isScreen) {
    process.stdout.write(ENTER);
    context.scope.onStop(() => process.stdout.write(LEAVE));
  }
  await watchOverviews(overviews, {
    refreshMs: REFRESH_MS,
    signal: interrupted.signal,
    show(overview, stale) {
      // Whoever reads lines has the last one already.
      if (stale !== undefined && !isScreen) return complain(`no newer overview: ${stale.reason}`);
      if (isScreen) process.stdout.write(REDRAW);
      context.print(overviewView(overview), () => formatOverview(overview, stale));
    },
  });
}

/** Undefined when the broker refuses us: the database has most of it. */
async function openPublisher({ scope, config, log }: Context): Promise<Publisher | undefined> {
  try {
    return await scope.own(connectPublisher(config.broker, unseen(log)), (p) => p.close());
  } catch (error) {
    if (error instanceof BrokerRefusal) return undefined;
    throw error;
  }
}

/** A broker that comes and goes is on the screen; lines about it would only smear it. */
function unseen(log: Log): Log {
  return { ...log, fault: (event, error) => log.debug(event, { error }), warn: log.debug };
}
