/** What of a channel's delivery tags can be acknowledged, in as few frames as possible. */
export interface AckWindow {
  /** The message is done: it is to be acknowledged. */
  settle(tag: number): void;
  /** The message was given back: nothing is to be sent for it. */
  skip(tag: number): void;
  /** What to acknowledge now: everything up to a tag at once, and those behind a straggler one by one. */
  take(): { readonly upTo: number | undefined; readonly singly: readonly number[] };
}

/** Tags count from 1 and belong to one channel: a new channel needs a new window. */
export function createAckWindow(): AckWindow {
  let lowestOpen = 1;
  let fresh: number[] = [];
  const closed = new Set<number>();

  return {
    settle(tag) {
      closed.add(tag);
      fresh.push(tag);
    },
    skip(tag) {
      closed.add(tag);
    },
    take() {
      while (closed.delete(lowestOpen)) lowestOpen += 1;
      const taken = fresh;
      fresh = [];
      // The broker closes the channel over a tag it no longer knows, so "up to" must end at one not yet sent.
      let upTo: number | undefined;
      const singly: number[] = [];
      for (const tag of taken) {
        if (tag > lowestOpen) singly.push(tag);
        else if (upTo === undefined || tag > upTo) upTo = tag;
      }
      return { upTo, singly };
    },
  };
}
