import { describe, expect, it } from 'vitest';
import { backoffMs, retryWithBackoff } from '../../src/runtime/backoff.ts';
import type { Episode } from '../../src/runtime/episode.ts';

const soon = () => 0;

describe('backoffMs', () => {
  it('doubles its ceiling from 100 ms up to the longest wait', () => {
    const ceilings = [1, 2, 3, 6, 7, 1_000].map((failures) => backoffMs(failures, 5_000, () => 1));
    expect(ceilings).toEqual([100, 200, 400, 3_200, 5_000, 5_000]);
  });

  it('is anywhere between a millisecond and its ceiling', () => {
    expect(backoffMs(5, 5_000, () => 0)).toBe(1);
    expect(backoffMs(5, 5_000, () => 0.5)).toBe(800);
  });
});

describe('retryWithBackoff', () => {
  it('tries until it succeeds and tells of the outage once when it begins and once when it ends', async () => {
    const episodes: Episode[] = [];
    let tries = 0;
    const result = await retryWithBackoff(
      async () => {
        tries += 1;
        if (tries <= 4) throw new Error(`down ${tries}`);
        return 'up';
      },
      { isTransient: () => true, onEpisode: (episode) => episodes.push(episode), random: soon },
    );
    expect(result).toBe('up');
    expect(episodes).toEqual([
      { kind: 'begins', error: new Error('down 1') },
      { kind: 'ends', failures: 4 },
    ]);
  });

  it('says nothing when all is well', async () => {
    const episodes: Episode[] = [];
    const onEpisode = (episode: Episode) => episodes.push(episode);
    expect(await retryWithBackoff(async () => 1, { isTransient: () => true, onEpisode })).toBe(1);
    expect(episodes).toEqual([]);
  });

  it('throws as it came what trying again cannot help', async () => {
    const failure = new Error('syntax');
    const isTransient = (error: unknown) => error !== failure;
    const errors = [new Error('down'), failure];
    let tries = 0;
    const result = retryWithBackoff(
      async () => {
        tries += 1;
        throw errors.shift();
      },
      { isTransient, random: soon },
    );
    await expect(result).rejects.toBe(failure);
    expect(tries).toBe(2);
  });

  it('throws the last error when it is told to stop while it waits', async () => {
    const stopping = new AbortController();
    const failure = new Error('down');
    const result = retryWithBackoff(() => Promise.reject(failure), {
      isTransient: () => true,
      signal: stopping.signal,
      onEpisode: () => setImmediate(() => stopping.abort()),
      random: () => 1,
    });
    await expect(result).rejects.toBe(failure);
  });
});
