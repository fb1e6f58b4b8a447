import type { Answer, Claim, Store } from './store.ts';

interface Entry {
  readonly deliveryId: string | undefined;
  readonly bodySha256: string;
  readonly lockedUntilMs: number;
  answer?: Answer;
}

export interface MemoryStoreOptions {
  /** How long a run may take before another may start; default 60 000. */
  readonly lockMs?: number | undefined;
  /** Milliseconds since the epoch; default `Date.now`. */
  readonly clock?: (() => number) | undefined;
}

/** Keeps everything in this process until it ends: for tests, development and drills. */
export function createMemoryStore(options: MemoryStoreOptions = {}): Store<undefined> {
  const { lockMs = 60_000, clock = Date.now } = options;
  const entries = new Map<string, Entry>();
  const keysByDelivery = new Map<string, string>();

  function forget(key: string, entry: Entry): void {
    // A run whose lock has lapsed no longer owns the key.
    if (entries.get(key) !== entry || entry.answer !== undefined) return;
    entries.delete(key);
    if (entry.deliveryId !== undefined) keysByDelivery.delete(entry.deliveryId);
  }

  return {
    async claim({ key, deliveryId, bodySha256 }): Promise<Claim<undefined>> {
      const knownKey =
        entries.has(key) || deliveryId === undefined ? key : (keysByDelivery.get(deliveryId) ?? key);
      const known = entries.get(knownKey);
      if (known?.answer !== undefined) {
        return {
          state: 'recorded',
          recorded: { key: knownKey, bodySha256: known.bodySha256, answer: known.answer },
        };
      }
      if (known !== undefined && clock() < known.lockedUntilMs) return { state: 'running' };
      if (known !== undefined) forget(knownKey, known);

      const entry: Entry = { deliveryId, bodySha256, lockedUntilMs: clock() + lockMs };
      entries.set(key, entry);
      if (deliveryId !== undefined) keysByDelivery.set(deliveryId, key);
      return {
        state: 'claimed',
        client: undefined,
        async record(answer) {
          if (entries.get(key) !== entry) return false;
          entry.answer = answer;
          return true;
        },
        async release() {
          forget(key, entry);
        },
      };
    },
  };
}
