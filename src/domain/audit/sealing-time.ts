import { instant, spell } from './instants.ts';

// A seal proves that something was on record when the seal was made. It says nothing of the time before.

/** Leaves in one seal, at most: a seal that has fewer left nothing waiting. */
export const MAX_LEAVES = 1_000;

/** Milliseconds within which what ends is sealed where sealing runs. */
export const USUAL_MS = 10 * 60_000;

/** Milliseconds that a transaction may take from its instant to its commit. */
const COMMIT_MS = 5 * 60_000;

/** When a seal was made, and with how many leaves. */
export interface MadeSeal {
  readonly number: number;
  readonly sealed_at: string;
  readonly leaves: number;
}

/** Milliseconds by which something was sealed later than it says that it happened; undefined: as soon as is usual. */
export function lateBy(saidAt: string, sealedAt: string): number | undefined {
  const ms = Date.parse(sealedAt) - Date.parse(saidAt);
  return ms > USUAL_MS ? ms : undefined;
}

/**
 * The seal that should have held something, were it as old as it says: what waits longest is sealed first, so that one
 * with room to spare holds all that had happened by then.
 *
 * @param saidAt  when it is said to have happened
 * @param earlier  seals that were made before the one that holds it
 * @returns undefined: there is none
 */
export function passedOver<T extends MadeSeal>(saidAt: string, earlier: readonly T[]): T | undefined {
  return earlier.find(
    (seal) => seal.leaves < MAX_LEAVES && Date.parse(seal.sealed_at) - Date.parse(saidAt) > COMMIT_MS,
  );
}

/** What is to be said of something that was sealed late. */
export function sayLate(saidAt: string, { sealedAt, ms }: { sealedAt: string; ms: number }): string {
  return `sealed ${spell(ms)} after it is said to have happened (${instant(saidAt)}): on record only since ${instant(sealedAt)}`;
}

/** What is to be said of something that a seal passed over. */
export function sayPassedOver(saidAt: string, seal: MadeSeal): string {
  return `it is said to be of ${instant(saidAt)}, and seal ${seal.number} of ${instant(seal.sealed_at)}, which had room for everything, does not hold it: it was written afterwards, or its time was moved`;
}
