import { type Options, SingleBar } from 'cli-progress';

/** Shows how far a long piece of work is, on stderr. */
export interface Progress {
  /** @param at  how much of the total is done  @param count  how many things that was */
  update(at: number, count: number): void;
  stop(): void;
}

const FORMAT = '{bar} {percentage}%  {count} {things}  {rate}/s  {eta_formatted} left';
/** How often a log file, where lines cannot be written over, gets one. */
const UNATTENDED_MS = 5_000;

/** Starts a bar; where stderr is no terminal, a line every few seconds. */
export function startProgress(total: number, things: string): Progress {
  const startedAt = performance.now();
  const options: Options = {
    format: FORMAT,
    stream: process.stderr,
    barsize: 30,
    hideCursor: false,
    etaBuffer: 100,
    noTTYOutput: true,
    notTTYSchedule: UNATTENDED_MS,
    gracefulExit: false,
    barCompleteChar: '█',
    barIncompleteChar: '░',
  };
  const bar = new SingleBar(options);
  bar.start(total, 0, { count: '0', rate: '0', things });
  return {
    update(at, count) {
      const seconds = (performance.now() - startedAt) / 1_000;
      bar.update(at, {
        count: count.toLocaleString('en'),
        rate: Math.round(count / Math.max(seconds, 0.001)).toLocaleString('en'),
      });
    },
    stop: () => bar.stop(),
  };
}
