import { appendFileSync, existsSync } from 'node:fs';
import type { Command } from 'commander';
import { createSigner } from '../../domain/audit/seal.ts';
import { sealWaiting } from '../../pipeline/evidence/seal.ts';
import { listSealsAfter, type StoredSeal, statementOf } from '../../store/evidence/seals.ts';
import type { Pool } from '../../store/pool.ts';
import { type CommonOptions, inContext, withCommonOptions, withExamples } from '../context.ts';
import { openDatabase } from '../parts.ts';
import { requireSealingKey } from './keys.ts';
import { type PublishedLine, readPublished } from './store.ts';

/** `duepost audit seal`. */
export function addAuditSeal(group: Command): void {
  const command = withCommonOptions(group.command('seal'))
    .description(
      'seal now what waits, and publish seals: keep the file where nobody who runs the database can write',
    )
    .option('--file <file>', 'append every seal that is not in it yet, one line of JSON each')
    .action((options: CommonOptions & { readonly file?: string }) =>
      inContext(options, async (context) => {
        const { config, log, print } = context;
        const signer = createSigner(requireSealingKey(config));
        const pool = await openDatabase(context);
        const made = await sealWaiting({ pool, signer, log });
        const published = options.file === undefined ? 0 : await publish(pool, options.file);
        const lines = (made ?? []).map(toLine);
        print({ sealed: lines, busy: made === undefined, published }, () =>
          [
            ...(made === undefined ? ['another process is sealing'] : []),
            ...(made?.length === 0 ? ['nothing waits to be sealed'] : []),
            ...lines.map(
              (l) => `seal ${l.seal.number}  ${l.seal.sealed_at}  ${l.seal.leaves} leaves  ${l.sha256}`,
            ),
            ...(options.file === undefined ? [] : [`${published} seals written to ${options.file}`]),
          ].join('\n'),
        );
      }),
    );
  withExamples(command, 'duepost audit seal', 'duepost audit seal --file /mnt/worm/duepost-seals.jsonl');
}

const PAGE = 200;

/** Appends the seals after the last one that the file has. */
async function publish(pool: Pool, file: string): Promise<number> {
  const before = existsSync(file) ? readPublished(file) : [];
  let after = Math.max(0, ...before.map((seal) => seal.number));
  let count = 0;
  for (;;) {
    const seals = await listSealsAfter(pool, { after, limit: PAGE });
    const last = seals.at(-1);
    if (last === undefined) return count;
    appendFileSync(file, seals.map((seal) => `${JSON.stringify(toLine(seal))}\n`).join(''));
    count += seals.length;
    after = last.number;
  }
}

function toLine(seal: StoredSeal): PublishedLine {
  return {
    seal: statementOf(seal),
    sha256: seal.sha256.toString('hex'),
    signature: seal.signature.toString('hex'),
  };
}
