import type { QueueState } from '../../broker/inspect-queues.ts';
import type { Publisher } from '../../broker/publisher.ts';
import type { Names } from '../../broker/topology.ts';
import type { Pool } from '../../store/pool.ts';
import { type AtRisk, listAtRisk } from '../../store/watch/at-risk.ts';
import {
  listTroubledEndpoints,
  readWritten,
  type TroubledEndpoint,
  type Written,
} from '../../store/watch/states.ts';
import { type DatabaseView, viewBroker, viewDatabase } from './observe.ts';

/** How things stand, for a person who looks. */
export interface Overview extends DatabaseView {
  readonly at: Date;
  /** Per second, since the reading before this one. */
  readonly rates: Omit<Written, 'atMs'>;
  readonly troubled: readonly TroubledEndpoint[];
  readonly nearest: readonly AtRisk[];
  /** By short name; undefined: the broker does not answer. */
  readonly queues: ReadonlyMap<string, QueueState> | undefined;
}

export interface OverviewSources {
  readonly pool: Pool;
  /** Undefined: the broker refuses us. */
  readonly publisher: Publisher | undefined;
  readonly names: Names;
}

/** Takes overviews; rates are averages over the last few of them. */
export interface OverviewTaker {
  take(): Promise<Overview>;
}

const LIST_LIMIT = 10;
/** The database's counters move once a second, so that a single interval would jump. */
const READINGS_KEPT = 5;

/** Begins to count; the first overview has the rates since now. */
export async function openOverviews({ pool, publisher, names }: OverviewSources): Promise<OverviewTaker> {
  const readings: Written[] = [await readWritten(pool)];

  async function takeRates(): Promise<Overview['rates']> {
    const now = await readWritten(pool);
    const before = readings.length < READINGS_KEPT ? readings[0] : readings.shift();
    readings.push(now);
    const seconds = (now.atMs - (before?.atMs ?? 0)) / 1000;
    const rate = (name: keyof Overview['rates']): number =>
      Math.max(0, now[name] - (before?.[name] ?? 0)) / seconds;
    return { accepted: rate('accepted'), attempts: rate('attempts'), ended: rate('ended') };
  }

  return {
    async take() {
      const queues = publisher?.isReady() ? viewBroker(publisher, names) : undefined;
      const [view, rates, troubled, nearest] = await Promise.all([
        viewDatabase(pool),
        takeRates(),
        listTroubledEndpoints(pool, LIST_LIMIT),
        listAtRisk(pool, LIST_LIMIT),
      ]);
      return {
        ...view,
        at: new Date(view.databaseNowMs),
        rates,
        troubled,
        nearest,
        queues: await queues?.catch(() => undefined),
      };
    },
  };
}
