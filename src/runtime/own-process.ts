import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { packageRoot } from './build-info.ts';

/** This program, running once more. */
export interface OwnProcess {
  readonly pid: number;
  /** Resolves when it has ended. */
  readonly ended: Promise<{ readonly code: number | undefined; readonly signal: string | undefined }>;
  hasEnded(): boolean;
  /** Resolves with the first line of its log that matches; rejects, with the last lines, when it ends before. */
  heard(pattern: RegExp): Promise<string>;
  /** Everything it wrote to stdout so far. */
  output(): string;
  /** Asks it to end (SIGTERM) and waits for that. */
  stop(): Promise<void>;
}

const KEPT_LINES = 20;

/**
 * Starts this program as a child process: the same variables, except those given. It ends with us, however we end.
 */
export function startOwnProcess(
  args: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): OwnProcess {
  const child = spawn(process.execPath, [join(packageRoot, 'dist/main.js'), ...args], {
    env: { ...process.env, ...variables },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const lines: string[] = [];
  const listeners = new Set<(line: string) => void>();
  let output = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  // Read to the end, or a full pipe would stop it.
  createInterface({ input: child.stderr as NodeJS.ReadableStream }).on('line', (line) => {
    lines.push(line);
    if (lines.length > KEPT_LINES) lines.shift();
    for (const listen of listeners) listen(line);
  });
  const ended = endOf(child);
  return {
    pid: child.pid ?? 0,
    ended,
    hasEnded: () => child.exitCode !== null || child.signalCode !== null,
    output: () => output,
    heard(pattern) {
      return new Promise((resolve, reject) => {
        const listen = (line: string): void => {
          if (!pattern.test(line)) return;
          listeners.delete(listen);
          resolve(line);
        };
        listeners.add(listen);
        lines.forEach(listen);
        void ended.then(() => reject(new Error(`duepost ${args.join(' ')} ended:\n${lines.join('\n')}`)));
      });
    },
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

function endOf(child: ChildProcess): OwnProcess['ended'] {
  return new Promise((resolve) => {
    child.once('error', () => resolve({ code: undefined, signal: undefined }));
    child.once('close', (code, signal) => resolve({ code: code ?? undefined, signal: signal ?? undefined }));
  });
}
