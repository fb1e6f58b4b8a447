import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { until } from './until.ts';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/** The members that tests reach into; which of them there are depends on the command. */
export interface Answer {
  readonly [member: string]: unknown;
  readonly data: readonly Answer[];
  readonly deliveries: readonly [{ readonly delivery_id: string }];
  readonly checks: readonly { readonly status: string; readonly mend?: string }[];
  readonly applied: readonly string[];
  readonly secret: string;
  readonly key: string;
  readonly key_id: string;
  readonly endpoint_id: string;
  readonly accepted: number;
}

/** How a run of the command line ended. */
export interface CliResult {
  /** Null: a signal ended it. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** What stdout holds, read as JSON; throws when it is none. */
  readonly json: Answer;
}

/** A run that goes on. */
export interface RunningCli {
  readonly child: ChildProcess;
  readonly pid: number;
  /** Resolves with the whole of stdout or stderr once it contains the text; rejects when the run ends before. */
  says(text: string): Promise<string>;
  readonly ended: Promise<CliResult>;
}

/** Starts the built command line as a process of its own, with no variables of the product but these. */
export function startCli(args: readonly string[], env: Readonly<Record<string, string>> = {}): RunningCli {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('DUEPOST_'));
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...Object.fromEntries(inherited), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  let isOver = false;
  const ended = new Promise<CliResult>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      isOver = true;
      resolve({
        code,
        stdout,
        stderr,
        get json() {
          if (stdout === '') throw new Error(`no answer on stdout; stderr: ${stderr}`);
          return JSON.parse(stdout) as Answer;
        },
      });
    });
  });
  return {
    child,
    pid: child.pid ?? 0,
    says: (text) =>
      until(`${text} from duepost ${args.join(' ')}`, () => {
        if (stdout.includes(text)) return stdout;
        if (stderr.includes(text)) return stderr;
        if (isOver) throw new Error(`it ended without saying ${text}:\n${stdout}${stderr}`);
        return undefined;
      }),
    ended,
  };
}

/** Runs a command line to its end. */
export function runCli(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<CliResult> {
  return startCli(args, env).ended;
}
