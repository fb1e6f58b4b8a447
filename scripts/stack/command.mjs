// What every npm script does around its real work: Node's version, signals, the stack, the exit code.

import { spawn } from 'node:child_process';
import { hold } from './lock.mjs';
import { root } from './place.mjs';
import { describeProcess, signalProcess } from './process.mjs';
import { Failure, Interrupted, printFailure } from './report.mjs';
import { createEnvironment, joinStack, leaveStack } from './stack.mjs';

const oldestNode = [20, 19];
const signalCodes = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };

// A Ctrl-C arrives twice: from the terminal, and from npm, which passes its own on.
const sameSignalWithinMs = 500;

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1])) return;
  throw new Failure(`Node ${process.versions.node} is too old: ${oldestNode.join('.')} or newer is needed`);
}

/** Passes signals to the foreground child; while there is none, the first one aborts the start. */
function watchSignals() {
  const controller = new AbortController();
  const watch = { signal: controller.signal, child: undefined, received: undefined };
  let lastAt = 0;
  for (const name of Object.keys(signalCodes)) {
    process.on(name, () => {
      const isEcho = watch.received === name && Date.now() - lastAt < sameSignalWithinMs;
      lastAt = Date.now();
      if (isEcho) return;
      const isFirst = watch.received === undefined;
      watch.received = name;
      controller.abort();
      if (watch.child === undefined) return;
      if (isFirst) signalProcess(watch.child.pid, name);
      else signalProcess(-watch.child.pid, 'SIGKILL');
    });
  }
  return watch;
}

/**
 * Runs the body and exits with the code it returns; a failure is printed as one block, exit code 1.
 * The body gets `watch`, whose abort signal tells a start to give up.
 */
export async function runScript(body) {
  const watch = watchSignals();
  try {
    checkNode();
    process.exitCode = await body(watch);
  } catch (error) {
    if (!(error instanceof Interrupted)) printFailure(error);
    process.exitCode = signalCodes[watch.received] ?? 1;
  }
}

/**
 * Runs `node <args>` in the foreground and gives its exit code. In a process group of its own, so that a Ctrl-C
 * reaches it once, through us, and it can stop in order.
 */
async function runNode(args, { name, env, watch }) {
  if (watch.received !== undefined) throw new Interrupted();
  const child = spawn(process.execPath, args, {
    cwd: root,
    env,
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  watch.child = child;
  if (child.pid !== undefined) hold(name, describeProcess(child.pid));
  try {
    return await new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (code, signal) => resolve(code ?? signalCodes[signal] ?? 137));
    });
  } finally {
    watch.child = undefined;
    // What it started and did not end, such as test workers after a Ctrl-C, would keep using the servers.
    signalProcess(-child.pid, 'SIGKILL');
  }
}

/**
 * Runs a command of the product beside its servers. The body gets `node(args)`, which gives an exit code.
 *
 * @param options `name` as others see it, `environment` for DUEPOST_ENV, `fsync` for measurements
 */
export async function withStack({ name, environment, fsync = false }, body) {
  const keep = process.argv.includes('--keep');
  const args = process.argv.slice(2).filter((argument) => argument !== '--keep');
  await runScript(async (watch) => {
    await joinStack({ name, fsync, prepare: true, signal: watch.signal });
    try {
      const env = createEnvironment(environment);
      return await body({ args, node: (nodeArgs) => runNode(nodeArgs, { name, env, watch }) });
    } finally {
      await leaveStack({ name, keep });
    }
  });
}
