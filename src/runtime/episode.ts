import { isOutage } from './outage.ts';

/** Whether failures begin, or have ended. */
export type Episode =
  | { readonly kind: 'begins'; readonly error: unknown }
  | { readonly kind: 'ends'; readonly failures: number };

/** Hears how each try of something ended. */
export interface Episodes {
  failed(error: unknown): void;
  succeeded(): void;
}

/** Tells what is tried again and again once when it begins to fail, once for each other cause, and once when it is over. */
export function createEpisodes(onEpisode: (episode: Episode) => void): Episodes {
  let failures = 0;
  let told: string | undefined;
  return {
    failed(error) {
      failures += 1;
      // The words for one outage change from try to try: cut off, refused, starting up.
      const cause = isOutage(error) ? 'outage' : String(error);
      if (cause === told) return;
      told = cause;
      onEpisode({ kind: 'begins', error });
    },
    succeeded() {
      if (failures === 0) return;
      onEpisode({ kind: 'ends', failures });
      failures = 0;
      told = undefined;
    },
  };
}
