import { listSecrets, replaceCiphertext } from '../../store/endpoint-secrets.ts';
import { insertOperation } from '../../store/operations.ts';
import { inTransaction, type Pool } from '../../store/pool.ts';
import type { SecretBox } from '../secrets.ts';
import type { Operator } from './operator.ts';

export interface ReencryptionReport {
  readonly reencrypted: number;
  /** Under the master key in force already. */
  readonly current: number;
  /** Endpoints with a secret that no configured key opens. */
  readonly unreadable: readonly string[];
}

const PAGE = 500;

/**
 * Encrypts every endpoint secret under the master key in force, so that earlier keys can be taken away. Safe to repeat,
 * and beside running workers: the secrets themselves stay the same.
 */
export async function reencryptSecrets(
  pool: Pool,
  box: SecretBox,
  by: Operator,
): Promise<ReencryptionReport> {
  const unreadable = new Set<string>();
  let reencrypted = 0;
  let current = 0;
  for (let after = { endpointId: '', secretNumber: 0 }; ; ) {
    const page = await listSecrets(pool, { after, limit: PAGE });
    for (const secret of page) {
      const { endpointId, ciphertext } = secret;
      if (box.isCurrent(endpointId, ciphertext)) current += 1;
      else {
        const opened = tryOpen(box, endpointId, ciphertext);
        if (opened === undefined) unreadable.add(endpointId);
        else {
          await inTransaction(pool, async (db) => {
            await replaceCiphertext(db, { ...secret, replacement: box.seal(endpointId, opened) });
            await insertOperation(db, {
              subjectId: endpointId,
              event: 'endpoint.secret_reencrypted',
              actor: by.actor,
              detail: { secret_number: secret.secretNumber },
            });
          });
          reencrypted += 1;
        }
      }
    }
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE)
      return { reencrypted, current, unreadable: [...unreadable] };
    after = last;
  }
}

function tryOpen(box: SecretBox, endpointId: string, ciphertext: Buffer): Buffer | undefined {
  try {
    return box.open(endpointId, ciphertext);
  } catch {
    return undefined;
  }
}
