/** Makes something quiet again; safe to call twice, the second call waits for the first. */
export type Stop = () => Promise<void>;

/** Holds what a role has opened, so that it is released in reverse order. */
export interface Scope {
  /** Takes over something opened and gives it back; `release` runs when the scope stops. */
  own<T>(thing: Promise<T>, release: (thing: T) => unknown): Promise<T>;
  own<T>(thing: T, release: (thing: T) => unknown): T;
  /** Runs `action` when the scope stops, in its place among what was owned. */
  onStop(action: () => unknown): void;
}

/**
 * Builds a role: opens its parts in order and returns the function that releases them in reverse order.
 *
 * When building fails, what was opened is released and the failure is thrown as it came.
 * Stopping goes on after a release that fails and throws an AggregateError at the end.
 */
export async function inScope(build: (scope: Scope) => Promise<void> | void): Promise<Stop> {
  const releases: (() => unknown)[] = [];
  let stopping: Promise<void> | undefined;
  const stop: Stop = () => {
    stopping ??= releaseAll(releases);
    return stopping;
  };
  const onStop = (action: () => unknown): void => {
    if (stopping !== undefined) throw new Error('the scope has stopped already');
    releases.push(action);
  };
  const own = <T>(thing: T | Promise<T>, release: (thing: T) => unknown): T | Promise<T> => {
    if (!(thing instanceof Promise)) {
      onStop(() => release(thing));
      return thing;
    }
    // Whoever opens it sees a failure; for the scope it means that there is nothing to release.
    const opened = thing.then(
      (value) => ({ value }),
      () => undefined,
    );
    onStop(async () => {
      const result = await opened;
      if (result !== undefined) await release(result.value);
    });
    return thing;
  };

  try {
    await build({ own: own as Scope['own'], onStop });
  } catch (error) {
    // What went wrong first is what people need to see, not what that did to the parts.
    await stop().catch(() => undefined);
    throw error;
  }
  return stop;
}

async function releaseAll(releases: (() => unknown)[]): Promise<void> {
  const failures: unknown[] = [];
  for (let release = releases.pop(); release !== undefined; release = releases.pop()) {
    try {
      await release();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, 'some parts could not be released');
}
