/** Turns single calls into batches. */
export interface Batcher<I, O> {
  /** Resolves with the result for this item; rejects with the error of its whole batch. Rejects after `close`. */
  add(item: I): Promise<O>;
  /** Takes nothing more and waits until everything added is settled. */
  close(): Promise<void>;
}

/** How batches are made. */
export interface BatcherOptions<I, O> {
  /** Does the work of a batch; gives one result for each item, in the same order. */
  readonly run: (items: readonly I[]) => Promise<readonly O[]>;
  /** How many batches may run at the same time. */
  readonly lanes: number;
  readonly maxBatch: number;
}

interface Waiting<I, O> {
  readonly item: I;
  readonly resolve: (result: O) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Batches without timers: a lane takes whatever has gathered by the time it is free.
 *
 * Alone, an item waits only for the end of the current turn of the event loop; under load batches grow by themselves.
 */
export function createBatcher<I, O>(options: BatcherOptions<I, O>): Batcher<I, O> {
  const { run, lanes, maxBatch } = options;
  let queue: Waiting<I, O>[] = [];
  let taken = 0; // entries before this index have left the queue; cut off in one go, never shifted one by one
  let running = 0;
  let inHand = 0;
  let scheduled = false;
  let closing: { promise: Promise<void>; resolve: () => void } | undefined;

  function schedule(): void {
    if (scheduled || running >= lanes || taken === queue.length) return;
    scheduled = true;
    // Not a microtask: what arrives from the same read of a socket shall travel together.
    setImmediate(start);
  }

  function start(): void {
    scheduled = false;
    while (running < lanes && taken < queue.length) void runLane(takeBatch());
  }

  function takeBatch(): Waiting<I, O>[] {
    const end = Math.min(queue.length, taken + maxBatch);
    const batch = queue.slice(taken, end);
    taken = end;
    if (taken === queue.length) {
      queue = [];
      taken = 0;
    } else if (taken >= 1_024 && taken * 2 >= queue.length) {
      queue = queue.slice(taken);
      taken = 0;
    }
    return batch;
  }

  async function runLane(batch: Waiting<I, O>[]): Promise<void> {
    running += 1;
    inHand += batch.length;
    try {
      const results = await run(batch.map(({ item }) => item));
      if (results.length !== batch.length) {
        throw new Error(`a batch of ${batch.length} items gave ${results.length} results`);
      }
      for (let index = 0; index < batch.length; index += 1) batch[index]?.resolve(results[index] as O);
    } catch (error) {
      for (const waiting of batch) waiting.reject(error);
    }
    running -= 1;
    inHand -= batch.length;
    if (closing !== undefined && inHand === 0 && taken === queue.length) closing.resolve();
    schedule();
  }

  return {
    add(item) {
      if (closing !== undefined) return Promise.reject(new Error('the batcher is closed'));
      return new Promise<O>((resolve, reject) => {
        queue.push({ item, resolve, reject });
        schedule();
      });
    },
    close() {
      closing ??= withResolver();
      if (inHand === 0 && taken === queue.length) closing.resolve();
      return closing.promise;
    },
  };
}

function withResolver(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
