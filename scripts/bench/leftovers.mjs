// What must not stay behind when a run is interrupted: databases, queues, processes.

const open = new Set();

/** Remembers how to remove something; the result forgets it again. */
export function remember(remove) {
  open.add(remove);
  return () => open.delete(remove);
}

/** Removes the newest first. */
export async function removeLeftovers() {
  for (const remove of [...open].reverse()) {
    open.delete(remove);
    await remove().catch((error) => process.stderr.write(`  not removed: ${error.message}\n`));
  }
}

export function removeLeftoversOnSignal() {
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ]) {
    process.once(signal, () => void removeLeftovers().then(() => process.exit(code)));
  }
}
