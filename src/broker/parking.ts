import { pause } from '../runtime/backoff.ts';

/** The prefetch is of one consumer, and not of its channel. */
export interface Places {
  /** How many of them are taken by messages that wait. */
  parked: number;
}

/** Messages of one channel that wait for room where they are set aside, while others are taken. */
export interface Parking {
  /** Where a new consumer begins: all its places are free. */
  begin(): Places;
  /** Takes one of the places, and resolves when the message is to be given back, or the signal is aborted. */
  wait(places: Places, timesBack: number, signal: AbortSignal): Promise<void>;
  /** Whether so many places of the present consumer are taken that another should follow it. */
  isCrowded(): boolean;
  /** Whether nothing but what waits is taken any more. */
  isBlocked(): boolean;
}

/** Doubles each time a message comes back: the delivery limit of a queue then is an hour away. */
const FIRST_MS = 1_000;
/** Well under the time after which the broker takes a channel for stuck whose messages are not acknowledged. */
const LONGEST_MS = 300_000;
/** In prefetches: what waits is held by the broker as taken, and has a timer here. */
const MOST = 10;

export function createParking(prefetch: number): Parking {
  let present: Places = { parked: 0 };
  let parked = 0;
  const isFull = (): boolean => parked >= prefetch * MOST;

  return {
    begin() {
      present = { parked: 0 };
      return present;
    },
    async wait(places, timesBack, signal) {
      parked += 1;
      places.parked += 1;
      await pause(Math.min(LONGEST_MS, FIRST_MS * 2 ** timesBack), signal);
      parked -= 1;
      places.parked -= 1;
    },
    isCrowded: () => present.parked * 2 >= prefetch && !isFull(),
    isBlocked: () => present.parked >= prefetch && isFull(),
  };
}
