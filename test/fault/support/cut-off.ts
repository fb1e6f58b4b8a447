import { retryWithBackoff } from '../../../src/runtime/backoff.ts';
import type { Config } from '../../../src/runtime/config.ts';
import { isTransient } from '../../../src/store/pool.ts';
import { databaseTarget, databaseThroughPort } from '../../support/database.ts';
import type { TestProduct } from '../../support/product.ts';
import { type Proxy, startProxy } from '../../support/proxy.ts';

/** A proxy in front of the database, and the configuration of whoever is to go through it. */
export async function openWayToDatabase(
  product: TestProduct,
  changes: Partial<Config['database']> = {},
): Promise<{ readonly proxy: Proxy; readonly config: Config }> {
  const proxy = await startProxy(databaseTarget());
  const url = databaseThroughPort(product.database.url, proxy.port);
  return { proxy, config: { ...product.config, database: { ...product.config.database, ...changes, url } } };
}

/** How often each event was logged. */
export function countLines(product: TestProduct): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { event } of product.recorded.lines) counts[event] = (counts[event] ?? 0) + 1;
  return counts;
}

/**
 * Makes the database raise an error at every insert into or update of a table that fits, until the returned function is
 * called.
 *
 * @param when    a condition on `new`
 * @param code    the SQLSTATE
 * @param times   how often; counted in a sequence, which no rollback turns back; without end if left out
 */
export async function raiseAt(
  product: TestProduct,
  table: string,
  { when = 'true', code = 'P0001', times = 1_000_000 }: { when?: string; code?: string; times?: number } = {},
): Promise<() => Promise<void>> {
  const { pool } = product.database;
  await pool.query(`
    create sequence fault_count;
    create function fault() returns trigger language plpgsql as $$
    begin
      if (${when}) and nextval('fault_count') <= ${times} then
        raise exception 'brought about by a test' using errcode = '${code}';
      end if;
      return new;
    end $$;
    create trigger fault before insert or update on ${table} for each row execute function fault();`);
  return async () => {
    // The product goes on writing meanwhile, and may lock the same tables in another order.
    await retryWithBackoff(() => pool.query('drop function fault cascade; drop sequence fault_count;'), {
      isTransient,
    });
  };
}
