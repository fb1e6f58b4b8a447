import { retryWithBackoff } from '../../runtime/backoff.ts';
import { createBatcher } from '../../runtime/batch.ts';
import { killPoint } from '../../runtime/kill-point.ts';
import type { Log } from '../../runtime/log.ts';
import { isTransient, type Queryable } from '../../store/pool.ts';
import { settleAttempts } from '../../store/settle.ts';
import type { Settled, Settlement } from '../../store/settlement.ts';

/** A settlement as an attempt hands it over: instants by the process's own monotonic clock, in milliseconds. */
export type Result = Omit<Settlement, 'startedAgoMs' | 'finishedAgoMs'> & {
  readonly startedAtMs?: number;
  readonly finishedAtMs?: number;
};

/** Writes results in batches; holds on to them while the database is away, because a known outcome is never called again. */
export interface Settler {
  settle(result: Result): Promise<Settled>;
  /** Waits for what was handed over. */
  close(): Promise<void>;
}

export interface SettlerOptions {
  readonly db: Queryable;
  readonly log: Log;
  readonly holder: string;
  readonly timeoutMs: number;
  /** Ends the waiting for a database that is away: what is not settled then lapses. */
  readonly signal: AbortSignal;
  /** Told of each try to write that fails. */
  readonly onWriteFailed?: () => void;
}

const LANES = 2;
const MAX_BATCH = 250;

export function createSettler({ db, log, holder, timeoutMs, signal, ...told }: SettlerOptions): Settler {
  /** Every failed try counts, so that an outage can be seen for as long as it lasts. */
  const tryToWrite = (results: readonly Result[]): Promise<Settled[]> =>
    settleAttempts(db, results.map(toSettlement), { holder, timeoutMs }).catch((error: unknown) => {
      told.onWriteFailed?.();
      throw error;
    });

  const write = (results: readonly Result[]): Promise<Settled[]> =>
    retryWithBackoff(() => tryToWrite(results), {
      isTransient,
      signal,
      onEpisode: (episode) =>
        episode.kind === 'begins'
          ? log.fault('settle_waits_for_database', episode.error)
          : log.info('settle_resumed', { failures: episode.failures }),
    });

  /** One result that the database refuses must not take its whole batch with it. */
  async function writeEach(results: readonly Result[]): Promise<(Settled | { readonly fault: unknown })[]> {
    try {
      const settled = new Map((await write(results)).map((s) => [s.deliveryId, s]));
      return results.map(
        (r) => settled.get(r.deliveryId) ?? { fault: new Error(`${r.deliveryId} is not there`) },
      );
    } catch (error) {
      const [only, ...others] = results;
      if (only === undefined || others.length === 0 || isTransient(error))
        return results.map(() => ({ fault: error }));
      const outcomes: (Settled | { readonly fault: unknown })[] = [];
      for (const result of results) outcomes.push(...(await writeEach([result])));
      return outcomes;
    }
  }

  const batcher = createBatcher<Result, Settled | { readonly fault: unknown }>({
    lanes: LANES,
    maxBatch: MAX_BATCH,
    run: async (results) => {
      const outcomes = new Map<Result, Settled | { readonly fault: unknown }>();
      for (const round of withoutRepeats(results)) {
        const settled = await writeEach(round);
        round.forEach((result, i) => outcomes.set(result, settled[i] as Settled));
      }
      return results.map((result) => outcomes.get(result) as Settled);
    },
  });

  return {
    async settle(result) {
      const outcome = await batcher.add(result);
      if ('fault' in outcome) throw outcome.fault;
      killPoint('settle.committed');
      return outcome;
    },
    close: () => batcher.close(),
  };
}

/** A delivery may occur twice, by a late result; a statement takes it once. */
function withoutRepeats(results: readonly Result[]): readonly (readonly Result[])[] {
  const rounds: Result[][] = [];
  const seen = new Map<string, number>();
  for (const result of results) {
    const round = seen.get(result.deliveryId) ?? 0;
    seen.set(result.deliveryId, round + 1);
    rounds[round] ??= [];
    rounds[round].push(result);
  }
  return rounds;
}

function toSettlement({ startedAtMs, finishedAtMs, ...rest }: Result): Settlement {
  const nowMs = performance.now();
  return {
    ...rest,
    ...(startedAtMs === undefined ? {} : { startedAgoMs: nowMs - startedAtMs }),
    ...(finishedAtMs === undefined ? {} : { finishedAgoMs: nowMs - finishedAtMs }),
  };
}
