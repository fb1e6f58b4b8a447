import { afterAll, beforeAll, expect, test } from 'vitest';
import { inTransaction } from '../../src/store/pool.ts';
import { openTestApi, type TestApi } from './client.ts';

let api: TestApi;

beforeAll(async () => {
  api = await openTestApi({ env: { DUEPOST_DATABASE_STATEMENT_TIMEOUT_MS: '500' } });
});

afterAll(() => api.close());

test.each([
  ['GET', '/v1/deliveries?state=cancelled', 'contract or endpoint'],
  ['GET', '/v1/dead-letters?dead_reason=endpoint_gone', 'contract or endpoint'],
  ['POST', '/v1/dead-letters/replay', 'contract or endpoint'],
  ['GET', '/v1/audit?date=2027-03-01', 'contract'],
])(
  '%s %s that would read too long says what to narrow it by, and not to try again',
  async (method, path, by) => {
    await inTransaction(api.product.parts.pool, async (db) => {
      // As slow as a table of any size.
      await db.query({
        text: 'set local idle_in_transaction_session_timeout = 0; lock table delivery, audit_record',
      });
      const options = method === 'POST' ? { body: { filter: {}, dry_run: true } } : {};
      const { status, body, headers } = await api.call(method, path, options);
      expect([status, body.code]).toEqual([422, 'too_broad']);
      expect(body.detail).toMatch(new RegExp(`: narrow it by ${by}$`));
      expect(headers.get('retry-after')).toBeNull();
    });
  },
);
