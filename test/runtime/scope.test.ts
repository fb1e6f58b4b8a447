import { describe, expect, it } from 'vitest';
import { inScope } from '../../src/runtime/scope.ts';

describe('a scope', () => {
  it('gives back what it takes over and releases it in reverse order', async () => {
    const told: string[] = [];
    const stop = await inScope(async (scope) => {
      const pool = scope.own({ name: 'pool' }, ({ name }) => told.push(name));
      const channel = await scope.own(Promise.resolve(`channel of ${pool.name}`), async (name) => {
        await Promise.resolve();
        told.push(name);
      });
      scope.onStop(() => told.push('readiness off'));
      told.push(`built ${channel}`);
    });
    expect(told).toEqual(['built channel of pool']);
    await stop();
    expect(told).toEqual(['built channel of pool', 'readiness off', 'channel of pool', 'pool']);
  });

  it('waits for one release before the next', async () => {
    const told: string[] = [];
    const stop = await inScope((scope) => {
      scope.own('pool', () => told.push('pool ends'));
      scope.own('work', async () => {
        told.push('work stops');
        await new Promise(setImmediate);
        told.push('work has stopped');
      });
    });
    await stop();
    expect(told).toEqual(['work stops', 'work has stopped', 'pool ends']);
  });

  it('stops once, however often it is told to', async () => {
    let released = 0;
    const stop = await inScope((scope) => {
      scope.onStop(async () => {
        await new Promise(setImmediate);
        released += 1;
      });
    });
    const first = stop();
    expect(stop()).toBe(first);
    await first;
    await stop();
    expect(released).toBe(1);
  });

  it('goes on after a release that fails and tells all failures at the end', async () => {
    const told: string[] = [];
    const stop = await inScope((scope) => {
      scope.onStop(() => told.push('last'));
      scope.onStop(() => Promise.reject(new Error('one')));
      scope.onStop(() => {
        throw new Error('two');
      });
    });
    const error = await stop().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(AggregateError);
    expect((error as AggregateError).errors).toEqual([new Error('two'), new Error('one')]);
    expect(told).toEqual(['last']);
  });

  it('releases what was opened when building fails, and throws the failure as it came', async () => {
    const told: string[] = [];
    const failure = new Error('no broker');
    const built = inScope(async (scope) => {
      scope.own('pool', () => told.push('pool'));
      scope.own('lock', () => Promise.reject(new Error('also broken')));
      await scope.own(Promise.reject<string>(failure), () => told.push('never opened'));
    });
    await expect(built).rejects.toBe(failure);
    expect(told).toEqual(['pool']);
  });

  it('releases what is still being opened when building fails', async () => {
    const told: string[] = [];
    let open: (name: string) => void = () => undefined;
    const built = inScope((scope) => {
      void scope.own(
        new Promise<string>((resolve) => {
          open = resolve;
        }),
        (name) => told.push(name),
      );
      throw new Error('meanwhile');
    });
    open('late');
    await expect(built).rejects.toThrow('meanwhile');
    expect(told).toEqual(['late']);
  });

  it('takes nothing over once it has stopped', async () => {
    let own: (thing: string) => string = (thing) => thing;
    const stop = await inScope((scope) => {
      own = (thing) => scope.own(thing, () => undefined);
    });
    await stop();
    expect(() => own('late')).toThrow('the scope has stopped already');
  });
});
