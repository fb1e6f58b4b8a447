// Child processes that answer questions over IPC and tell of events.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/**
 * Starts a file of this folder as a process of its own.
 *
 * @returns `ask(command, options)`, `event(name)` for the next event of that name, `pid`, `stop()`
 */
export function startChild(file, { env = {}, args = [], execArgv = [] } = {}) {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), args, {
    env: { ...process.env, ...env },
    execArgv,
    serialization: 'advanced',
  });
  const questions = new Map();
  const waiting = new Map();
  let lastId = 0;
  let failed;
  const fail = (error) => {
    failed = error;
    for (const { reject } of [...questions.values(), ...[...waiting.values()].flat()]) reject(error);
  };
  child.on('message', (message) => {
    if (message.event !== undefined) {
      for (const { resolve } of waiting.get(message.event) ?? []) resolve(message);
      waiting.delete(message.event);
    } else if (message.error !== undefined) questions.get(message.id)?.reject(new Error(message.error));
    else questions.get(message.id)?.resolve(message);
    questions.delete(message.id);
  });
  child.on('exit', (code, signal) => fail(new Error(`${file} ended (${signal ?? code})`)));
  return {
    pid: child.pid,
    ask(command, options) {
      if (failed !== undefined) return Promise.reject(failed);
      const id = ++lastId;
      child.send({ id, command, options });
      return new Promise((resolve, reject) => questions.set(id, { resolve, reject }));
    },
    event(name) {
      if (failed !== undefined) return Promise.reject(failed);
      const promise = new Promise((resolve, reject) => {
        waiting.set(name, [...(waiting.get(name) ?? []), { resolve, reject }]);
      });
      // Whoever asked early may have given up since.
      promise.catch(() => {});
      return promise;
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      child.disconnect();
      const timer = setTimeout(() => child.kill('SIGKILL'), 15_000);
      await gone;
      clearTimeout(timer);
    },
  };
}

/** The other side: answers questions with the functions of `commands`. */
export function answerQuestions(commands) {
  process.on('message', async ({ id, command, options }) => {
    try {
      process.send({ id, ...(await commands[command](options ?? {})) });
    } catch (error) {
      process.send({ id, error: error?.stack ?? String(error) });
    }
  });
  process.on('disconnect', async () => {
    await commands.close?.();
    process.exit();
  });
}
