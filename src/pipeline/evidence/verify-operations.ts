import { operationLeafText } from '../../domain/audit/facts.ts';
import type { Findings } from '../../domain/audit/finding.ts';
import { hashLeaf } from '../../domain/audit/merkle.ts';
import { findOperations, listOperationsAfter } from '../../store/evidence/operations.ts';
import { findLeaves, listSealedOperationsAfter } from '../../store/evidence/seal-leaves.ts';
import { findSealTimes } from '../../store/evidence/seals.ts';
import { findUnsealed } from '../../store/evidence/unsealed.ts';
import type { Queryable } from '../../store/pool.ts';
import { checkSealingTime, type Late } from './verify-sealing-time.ts';

const PAGE = 1_000;

/** Checks that every operation is what was sealed, or waits to be, and that none is gone. */
export async function verifyOperations(
  db: Queryable,
  { findings, late }: { readonly findings: Findings; readonly late: Late },
): Promise<void> {
  for (let after = '0'; ; ) {
    const operations = await listOperationsAfter(db, { after, limit: PAGE });
    const last = operations.at(-1);
    if (last === undefined) break;
    after = last.operation_id;
    const ids = operations.map((o) => o.operation_id);
    const leaves = (await findLeaves(db, ids)).filter((l) => l.kind === 'operation');
    const times = await findSealTimes(db, [...new Set(leaves.map((l) => l.sealNumber))]);
    const waiting = new Set((await findUnsealed(db, ids)).map((w) => w.subjectId));
    for (const operation of operations) {
      const where = `operation ${operation.operation_id}`;
      const own = leaves.filter((l) => l.subjectId === operation.operation_id);
      if (own.length + Number(waiting.has(operation.operation_id)) !== 1) {
        findings.add(
          where,
          own.length === 0
            ? 'it is not sealed and does not wait to be: it was added or its leaf removed'
            : 'it is sealed more than once',
        );
      }
      for (const leaf of own) {
        const hash = hashLeaf(operationLeafText(operation)).toString('hex');
        findings.expect(
          hash === leaf.sha256,
          where,
          `it is not what was sealed in seal ${leaf.sealNumber}: it was changed`,
        );
        const time = times.get(leaf.sealNumber);
        checkSealingTime(where, { saidAt: operation.at, time, findings, late });
      }
    }
  }
  for (let after = ''; ; ) {
    const ids = await listSealedOperationsAfter(db, { after, limit: PAGE });
    const last = ids.at(-1);
    if (last === undefined) return;
    after = last;
    const there = await findOperations(db, ids);
    for (const id of ids) findings.expect(there.has(id), `operation ${id}`, 'it was sealed, and is missing');
  }
}
