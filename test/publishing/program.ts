import { spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { namesOf } from '../../src/broker/topology.ts';
import { packageRoot } from '../../src/runtime/build-info.ts';
import type { TestProduct } from '../support/product.ts';

/** One of examples/publishing, and what runs it. */
export interface Program {
  readonly language: string;
  readonly command: readonly [string, ...string[]];
}

export interface ProgramResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The programs that can run on this machine: the Python one needs pika, which npm cannot install. */
export function findPrograms(): Program[] {
  const programs: Program[] = [
    { language: 'Node', command: [process.execPath, example('node/publish.mjs')] },
  ];
  const python = ['python3', '/usr/bin/python3'].find(
    (candidate) => spawnSync(candidate, ['-c', 'import pika']).status === 0,
  );
  if (python !== undefined)
    programs.push({ language: 'Python', command: [python, example('python/publish.py')] });
  else process.stderr.write('examples/publishing/python does not run here: no python3 with pika\n');
  return programs;
}

/** Runs a program with a command on its standard input; `variables` replace its own. */
export function runProgram(
  { command: [file, ...args] }: Program,
  product: TestProduct,
  {
    routingKey,
    command,
    variables,
  }: {
    readonly routingKey: string;
    readonly command: string;
    readonly variables?: Readonly<Record<string, string>>;
  },
): Promise<ProgramResult> {
  const child = spawn(file, [...args, routingKey], {
    env: {
      ...process.env,
      AMQP_URL: product.config.broker.url,
      DUEPOST_COMMANDS: namesOf(product.config.broker.prefix).commands,
      ...variables,
    },
    stdio: 'pipe',
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  child.stdin.end(command);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
}

function example(path: string): string {
  return join(packageRoot, 'examples/publishing', path);
}
