import { readFileSync } from 'node:fs';
import { splitFindings } from '../../domain/audit/finding.ts';
import type { PublishedSeal } from '../../domain/audit/published.ts';
import type { SealStatement } from '../../domain/audit/seal.ts';
import { type StoreReport, verifyStore } from '../../pipeline/evidence/verify-store.ts';
import { CheckFailed } from '../check-failed.ts';
import type { Context } from '../context.ts';
import { openDatabase } from '../parts.ts';
import { readPublicKeys } from './keys.ts';

/** Checks everything in the database; throws CheckFailed when something is not as it was written. */
export async function verifyWholeStore(
  context: Context,
  options: { readonly publicKey?: readonly string[]; readonly published?: string },
): Promise<void> {
  const { config, json, print } = context;
  const report = await verifyStore({
    pool: await openDatabase(context),
    checkSignature: readPublicKeys(options.publicKey ?? [], config),
    ...(options.published === undefined ? {} : { published: readPublished(options.published) }),
    onProgress: json ? () => undefined : showProgress(),
  });
  print(toView(report), () => describe(report));
  if (!report.ok) throw new CheckFailed();
}

/** One line of a file of published seals. */
export interface PublishedLine {
  readonly seal: SealStatement;
  readonly sha256: string;
  readonly signature: string;
}

/** Seals as `duepost audit seal --file` writes them, one line of JSON each; throws for what is none. */
export function readPublished(file: string): PublishedSeal[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line, i) => {
      try {
        const { seal, sha256 } = JSON.parse(line) as PublishedLine;
        return { number: seal.number, sha256 };
      } catch {
        throw new Error(`${file}, line ${i + 1} is no seal`);
      }
    });
}

function toView({ head, dropped, late, published, ...report }: StoreReport): Record<string, unknown> {
  return {
    ...report,
    head: head ?? null,
    published: published ?? null,
    sealed_late: late,
    dropped: dropped.map(({ kind, month, at, olderThan }) => ({ kind, month, at, older_than: olderThan })),
  };
}

function describe(report: StoreReport): string {
  const { head, dropped, unsealed, findings, found } = report;
  const { against, unknownKeys } = splitFindings(findings);
  const fits = `all rows of ${report.deliveries} deliveries fit together, and their seals (${report.seals})`;
  return [
    ...(report.ok
      ? [
          `Nothing was found changed: ${fits}${report.published === undefined ? ', compared with nothing outside this database' : ''}.`,
        ]
      : []),
    ...(against.length > 0 ? ['Not everything is as it was written:'] : []),
    ...against.map((f) => `  ${f.where}: ${f.what}`),
    ...(unknownKeys.length > 0 && against.length === 0 ? [`NOT CHECKED TO THE END: ${fits}.`] : []),
    ...describeUnknownKeys(unknownKeys),
    ...(found > findings.length ? [`  … and ${found - findings.length} more`] : []),
    describeCompared(report),
    'Not checked: the settings of endpoints and keys as they are now; what was done to them is (duepost audit operations).',
    ...describeLate(report),
    ...(head === undefined
      ? ['No seal was made yet: whoever rewrites a whole chain leaves no trace.']
      : [`Last seal: ${head.number} of ${head.sealed_at}, ${head.sha256}`]),
    ...(unsealed === 0 ? [] : [`Not sealed yet: ${unsealed}. Until then only their chains protect them.`]),
    ...dropped.map(
      (d) => `Dropped by retention: ${d.kind}s of ${d.month} (older than ${d.olderThan}), ${d.at}`,
    ),
  ].join('\n');
}

function describeCompared({ published, head }: StoreReport): string {
  if (published === undefined) {
    return 'Compared with nothing outside: whoever owns the database can rewrite it and have it sealed again, and only seals that were published show that (--published FILE).';
  }
  const last = head?.number ?? 0;
  const since =
    last > published.last
      ? `; what was sealed since, up to seal ${last}, was compared with nothing outside`
      : '';
  return `Compared with published seals: ${published.seals}, up to seal ${published.last}${since}.`;
}

function describeLate({ late }: StoreReport): string[] {
  if (late.found === 0) return [];
  return [
    `Sealed late (${late.found}): a seal vouches for nothing before it was made.`,
    ...late.first.slice(0, 10).map((f) => `  ${f.where}: ${f.what}`),
    ...(late.found > 10 ? [`  … and ${late.found - 10} more`] : []),
  ];
}

/** What could not be checked for want of keys, and what to give. */
export function describeUnknownKeys(keys: readonly string[]): string[] {
  return keys.map(
    (key) =>
      `Not checked: signatures by the key ${key}. Give its public key with --public-key FILE (duepost audit public-key prints it where that key seals); if nobody has it, somebody else signed.`,
  );
}

/** One line that is written over, where stderr is a terminal. */
function showProgress(): (stage: string, done: number) => void {
  if (!process.stderr.isTTY) return () => undefined;
  return (stage, done) => process.stderr.write(`\r\x1b[K${stage}: ${done.toLocaleString('en')} checked\r`);
}
