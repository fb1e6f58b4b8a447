import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createBatcher } from '../../src/runtime/batch.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A run that tests let end by hand. */
function createRun() {
  const batches: (readonly number[])[] = [];
  const endings: (() => void)[] = [];
  const run = (items: readonly number[]) => {
    batches.push(items);
    return new Promise<readonly string[]>((resolve) => {
      endings.push(() => resolve(items.map((item) => `<${item}>`)));
    });
  };
  return { run, batches, end: () => endings.shift()?.() };
}

describe('a batcher', () => {
  it('gives everyone the result of their own item', async () => {
    const batcher = createBatcher({
      run: async (items: readonly number[]) => items.map((n) => n * 2),
      lanes: 1,
      maxBatch: 3,
    });
    expect(await Promise.all([1, 2, 3, 4, 5, 6, 7].map((n) => batcher.add(n)))).toEqual([
      2, 4, 6, 8, 10, 12, 14,
    ]);
  });

  it('puts what arrives in the same turn into one batch, callbacks of that turn included', async () => {
    const { run, batches, end } = createRun();
    const batcher = createBatcher({ run, lanes: 2, maxBatch: 10 });
    const first = batcher.add(1);
    await Promise.resolve();
    const second = batcher.add(2);
    await turn();
    expect(batches).toEqual([[1, 2]]);
    end();
    expect(await Promise.all([first, second])).toEqual(['<1>', '<2>']);
  });

  it('lets gather what arrives while all lanes are busy, and takes it when one is free', async () => {
    const { run, batches, end } = createRun();
    const batcher = createBatcher({ run, lanes: 2, maxBatch: 3 });
    const results: Promise<string>[] = [];
    for (let item = 1; item <= 2; item += 1) {
      results.push(batcher.add(item));
      await turn();
    }
    for (let item = 3; item <= 6; item += 1) {
      results.push(batcher.add(item));
      await turn();
    }
    expect(batches).toEqual([[1], [2]]);
    end();
    await turn();
    await turn();
    expect(batches).toEqual([[1], [2], [3, 4, 5]]);
    end();
    end();
    await turn();
    await turn();
    end();
    expect(await Promise.all(results)).toEqual(['<1>', '<2>', '<3>', '<4>', '<5>', '<6>']);
  });

  it('fails everyone of a batch with its error, and nobody else', async () => {
    const failure = new Error('connection lost');
    const batcher = createBatcher({
      run: async (items: readonly number[]) => {
        if (items.includes(1)) throw failure;
        return items;
      },
      lanes: 1,
      maxBatch: 2,
    });
    const results = await Promise.allSettled([1, 2, 3].map((n) => batcher.add(n)));
    expect(results).toEqual([
      { status: 'rejected', reason: failure },
      { status: 'rejected', reason: failure },
      { status: 'fulfilled', value: 3 },
    ]);
  });

  it('fails a batch whose results are not one for each item, and one whose run throws at once', async () => {
    const short = createBatcher<number, number>({ run: async () => [1], lanes: 1, maxBatch: 5 });
    await expect(Promise.all([short.add(1), short.add(2)])).rejects.toThrow(
      'a batch of 2 items gave 1 results',
    );
    const thrower = createBatcher<number, number>({
      run: () => {
        throw new Error('at once');
      },
      lanes: 1,
      maxBatch: 5,
    });
    await expect(thrower.add(1)).rejects.toThrow('at once');
  });

  it('is closed when everything added is settled, and takes nothing more', async () => {
    const { run, batches, end } = createRun();
    const batcher = createBatcher({ run, lanes: 1, maxBatch: 1 });
    const results = [batcher.add(1), batcher.add(2)];
    let isClosed = false;
    const closed = batcher.close().then(() => {
      isClosed = true;
    });
    await expect(batcher.add(3)).rejects.toThrow('the batcher is closed');
    await turn();
    end();
    await turn();
    await turn();
    expect([isClosed, batches.length]).toEqual([false, 2]);
    end();
    await closed;
    expect(await Promise.all(results)).toEqual(['<1>', '<2>']);
    await batcher.close();
  });

  it('is closed at once when it is idle', async () => {
    const { run } = createRun();
    await createBatcher({ run, lanes: 1, maxBatch: 1 }).close();
  });

  it('runs every item exactly once, in order of arrival, within its bounds', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 7 }),
        fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 12 }),
        async (lanes, maxBatch, bursts) => {
          const seen: number[] = [];
          let busy = 0;
          let mostBusy = 0;
          const batcher = createBatcher({
            run: async (items: readonly number[]) => {
              busy += 1;
              mostBusy = Math.max(mostBusy, busy);
              expect(items.length).toBeLessThanOrEqual(maxBatch);
              seen.push(...items);
              await turn();
              busy -= 1;
              return items;
            },
            lanes,
            maxBatch,
          });
          const added: Promise<number>[] = [];
          for (const burst of bursts) {
            for (let index = 0; index < burst; index += 1) added.push(batcher.add(added.length));
            await turn();
          }
          await batcher.close();
          const expected = added.map((_, index) => index);
          expect(await Promise.all(added)).toEqual(expected);
          expect(seen).toEqual(expected);
          expect(mostBusy).toBeLessThanOrEqual(lanes);
        },
      ),
      { numRuns: 100 },
    );
  });
});
