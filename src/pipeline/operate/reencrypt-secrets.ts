import { listSecrets, replaceCiphertext } from '../../store/endpoint-secrets.ts';
import { listTlsKeys, replaceTlsKey } from '../../store/endpoint-tls.ts';
import { insertOperation } from '../../store/operations.ts';
import { inTransaction, type Pool, type Queryable } from '../../store/pool.ts';
import type { SecretBox } from '../secrets.ts';
import type { Operator } from './operator.ts';

export interface ReencryptionReport {
  readonly reencrypted: number;
  /** Under the master key in force already. */
  readonly current: number;
  /** Endpoints with a secret or client key that no configured key opens. */
  readonly unreadable: readonly string[];
}

const PAGE = 500;

/** One thing that is encrypted under a master key. */
interface Sealed {
  readonly endpointId: string;
  readonly ciphertext: Buffer;
  /** What the record of operations says when it is encrypted again. */
  readonly operation: { readonly event: string; readonly detail: Record<string, unknown> };
  replace(db: Queryable, replacement: Buffer): Promise<void>;
}

/**
 * Encrypts every endpoint secret and client key under the master key in force, so that earlier keys can be taken away.
 * Safe to repeat, and beside running workers: what is encrypted stays the same.
 */
export async function reencryptSecrets(
  pool: Pool,
  box: SecretBox,
  by: Operator,
): Promise<ReencryptionReport> {
  const unreadable = new Set<string>();
  let reencrypted = 0;
  let current = 0;
  for await (const { endpointId, ciphertext, operation, replace } of walk(pool)) {
    if (box.isCurrent(endpointId, ciphertext)) {
      current += 1;
      continue;
    }
    const opened = tryOpen(box, endpointId, ciphertext);
    if (opened === undefined) {
      unreadable.add(endpointId);
      continue;
    }
    await inTransaction(pool, async (db) => {
      await replace(db, box.seal(endpointId, opened));
      await insertOperation(db, { subjectId: endpointId, actor: by.actor, ...operation });
    });
    reencrypted += 1;
  }
  return { reencrypted, current, unreadable: [...unreadable] };
}

async function* walk(pool: Pool): AsyncGenerator<Sealed> {
  const secrets = inPages({ endpointId: '', secretNumber: 0 }, (after) =>
    listSecrets(pool, { after, limit: PAGE }),
  );
  for await (const secret of secrets) {
    yield {
      ...secret,
      operation: { event: 'endpoint.secret_reencrypted', detail: { secret_number: secret.secretNumber } },
      replace: (db, replacement) => replaceCiphertext(db, { ...secret, replacement }),
    };
  }
  const keys = inPages({ endpointId: '' }, (after) =>
    listTlsKeys(pool, { after: after.endpointId, limit: PAGE }),
  );
  for await (const key of keys) {
    yield {
      ...key,
      operation: { event: 'endpoint.client_key_reencrypted', detail: {} },
      replace: (db, replacement) => replaceTlsKey(db, { ...key, replacement }),
    };
  }
}

async function* inPages<Position, Item extends Position>(
  start: Position,
  list: (after: Position) => Promise<Item[]>,
): AsyncGenerator<Item> {
  for (let after = start; ; ) {
    const page = await list(after);
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
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
