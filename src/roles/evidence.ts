import { createSigner } from '../domain/audit/seal.ts';
import { retain } from '../pipeline/evidence/retention.ts';
import { type SealMemory, sealWaiting } from '../pipeline/evidence/seal.ts';
import type { Config } from '../runtime/config.ts';
import type { Log } from '../runtime/log.ts';
import type { Meters } from '../runtime/metrics.ts';
import type { Pool } from '../store/pool.ts';
import type { LoopPass } from './measure.ts';

const RETENTION_INTERVAL_MS = 60 * 60_000;

/** Seals what waits, and drops what is older than it is kept. */
export function startEvidenceLoops(
  loop: (name: string, pauseMs: number, pass: LoopPass) => void,
  of: {
    readonly pool: Pool;
    readonly config: Config;
    readonly log: Log;
    readonly signal: AbortSignal;
    readonly meters: Meters;
  },
): void {
  const { pool, config, log, signal, meters } = of;
  const sealed = meters.counter('duepost_seals_total');
  const removed = meters.counter('duepost_retention_removed_total');
  const { privateKey, intervalMs } = config.sealing;
  if (privateKey === undefined) {
    log.warn('sealing_is_off', { reason: 'no sealing key is configured: see duepost audit keygen' });
  } else {
    const signer = createSigner(privateKey);
    const memory: SealMemory = {};
    loop('seal', intervalMs, async () => {
      const seals = await sealWaiting({ pool, signer, log, memory, signal });
      if (seals === undefined) return undefined;
      sealed([], seals.length);
      return { again: false };
    });
  }
  loop('retention', RETENTION_INTERVAL_MS, async () => {
    const months = await retain({ pool, log, signal, retention: config.retention, actor: 'retention' });
    if (months === undefined) return undefined;
    for (const month of months) removed([month.kind], month.removed);
    return { again: false };
  });
}
