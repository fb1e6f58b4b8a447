import { readFileSync, writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import { bundleText } from '../../domain/audit/bundle.ts';
import { splitFindings } from '../../domain/audit/finding.ts';
import { evidencePage } from '../../domain/audit/page.ts';
import { createSignatureCheck, publicKeyOf } from '../../domain/audit/seal.ts';
import { type BundleReport, verifyBundle } from '../../domain/audit/verify-bundle.ts';
import { exportEvidence } from '../../pipeline/evidence/export.ts';
import { readDate } from '../arguments.ts';
import { CheckFailed } from '../check-failed.ts';
import { complain } from '../complain.ts';
import { type CommonOptions, type Context, inContext, withCommonOptions, withExamples } from '../context.ts';
import { openDatabase } from '../parts.ts';
import { readPublicKeys, signerOf } from './keys.ts';
import { readReceipts } from './receipts.ts';
import { describeUnknownKeys, readPublished, verifyWholeStore } from './store.ts';

interface ExportOptions extends CommonOptions {
  readonly contract?: string;
  readonly date?: string;
  readonly delivery?: string;
  readonly out?: string;
  readonly html?: string;
  readonly receipts?: string;
}

interface VerifyOptions extends CommonOptions {
  readonly publicKey?: readonly string[];
  readonly published?: string;
  readonly html?: string;
}

/** `duepost audit export` and `audit verify`. */
export function addAuditEvidence(group: Command): void {
  const exporting = withCommonOptions(group.command('export'))
    .description('one file with everything that proves what was sent, when, and what was answered')
    .option('--contract <ref>', 'of this contract')
    .option('--date <date>', 'YYYY-MM-DD: the renewal date, or a day between due and ended', readDate)
    .option('--delivery <id>', 'of this delivery')
    .option('--out <file>', 'where to; stdout if left out')
    .option('--html <file>', 'the same as a page for people')
    .option(
      '--receipts <file>',
      "attach what the receiver's own record says of the keys: CSV, JSON or JSON lines",
    )
    .action((options: ExportOptions, self: Command) => {
      if (options.contract === undefined && options.delivery === undefined)
        self.error('error: name a --contract or a --delivery', { exitCode: 2 });
      return inContext(options, (context) => runExport(context, options));
    });
  withExamples(
    exporting,
    'duepost audit export --contract pol-7781 --out pol-7781.json --html pol-7781.html',
    'duepost audit export --contract pol-7781 --date 2027-03-31 --receipts ledger.csv',
  );
  const verifying = withCommonOptions(group.command('verify'))
    .description('check a file by the public key alone; or, without a file, everything in the database')
    .argument('[file]', 'a file that duepost audit export wrote; - for stdin')
    .option('--public-key <file>', 'of the key that sealed; again for each key that ever did', collect)
    .option('--published <file>', 'compare with seals as they were published (duepost audit seal --file)')
    .option('--html <file>', 'with a file: the same as a page for people')
    .action((file: string | undefined, options: VerifyOptions, self: Command) => {
      if (file === undefined) return inContext(options, (context) => verifyWholeStore(context, options));
      if (options.publicKey === undefined)
        self.error('error: name the --public-key to check the file by', { exitCode: 2 });
      return inContext(options, (context) => verifyFile(context, file, options), []);
    });
  withExamples(
    verifying,
    'duepost audit verify pol-7781.json --public-key sealing.pub.pem --published seals.jsonl',
    'duepost audit verify --published seals.jsonl',
  );
}

async function runExport(context: Context, options: ExportOptions): Promise<void> {
  const { config, actor } = context;
  const receipts = options.receipts === undefined ? [] : readReceipts(options.receipts);
  const pool = await openDatabase(context);
  const bundle = await exportEvidence(
    { contractRef: options.contract, date: options.date, deliveryId: options.delivery },
    { pool, actor, signer: signerOf(config), receipts },
  );
  const text = bundleText(bundle);
  if (options.html !== undefined) {
    const { privateKey } = config.sealing;
    const check =
      privateKey === undefined ? () => true as const : createSignatureCheck([publicKeyOf(privateKey)]);
    const report = verifyBundle(Buffer.from(text), check);
    writeFileSync(options.html, evidencePage(bundle, report), { mode: 0o600 });
  }
  // What it holds is somebody's payload.
  if (options.out !== undefined) writeFileSync(options.out, text, { mode: 0o600 });
  else if (options.html === undefined) await writeWhole(text);
  const count = bundle.deliveries.length;
  const unsigned =
    bundle.signature === null ? '; it is not signed, because no sealing key is configured' : '';
  complain(`${count} ${count === 1 ? 'delivery' : 'deliveries'} exported${unsigned}`);
}

/** Resolves when a pipe has taken all of it, or its reader has gone: the process ends right after. */
function writeWhole(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => {
      if (!error || (error as NodeJS.ErrnoException).code === 'EPIPE') resolve();
      // Whoever watches stdout has said why.
      else reject(new CheckFailed());
    });
  });
}

function verifyFile({ print }: Context, file: string, options: VerifyOptions): void {
  const given = options.published === undefined ? undefined : readPublished(options.published);
  const bytes = readFileSync(file === '-' ? 0 : file);
  const report = verifyBundle(bytes, readPublicKeys(options.publicKey ?? []), given);
  if (options.html !== undefined && report.bundle !== undefined)
    writeFileSync(options.html, evidencePage(report.bundle, report), { mode: 0o600 });
  const { ok, findings, head, published, proof } = report;
  // What nobody signed could have been made by anybody; and who gives published seals wants to know that they agree.
  const isTrusted = ok && proof.vouched_for && (published?.unknown.length ?? 0) === 0;
  const view = { ok: isTrusted, findings, head: head ?? null, published: published ?? null, ...proof };
  print(view, () => describe(report));
  if (!isTrusted) throw new CheckFailed();
}

/** A report for people. */
function describe({ ok, findings, head, published, proof }: BundleReport): string {
  if (!ok) {
    const { against, unknownKeys } = splitFindings(findings);
    return [
      against.length > 0
        ? 'NOT SOUND: this file is not what was exported, or what was sealed.'
        : 'NOT CHECKED TO THE END: it fits together, and who signed it is open.',
      ...against.map((f) => `  ${f.where}: ${f.what}`),
      ...describeUnknownKeys(unknownKeys),
    ].join('\n');
  }
  return [
    verdict({ published, proof }),
    ...proof.deliveries.flatMap((d) => ['', d.delivery_id, ...d.says.map((line) => `  ${line}`)]),
    '',
    'What this proves:',
    ...proof.proves.map((line) => `  ${line}`),
    '',
    'What it cannot prove:',
    ...proof.cannot.map((line) => `  ${line}`),
    ...(head === undefined
      ? []
      : ['', `Last seal it knows of: ${head.number} of ${head.sealed_at}, ${head.sha256}`]),
  ].join('\n');
}

function verdict({ published, proof }: Pick<BundleReport, 'published' | 'proof'>): string {
  if (!proof.vouched_for) {
    return 'NOT VOUCHED FOR: it fits together, but the file is not signed: deliveries, operations and receipts may have been left out, and whatever is not sealed, receipts first of all, made up.';
  }
  if (published === undefined) return 'SOUND.';
  const { same, unknown } = published;
  return unknown.length > 0
    ? `NOT COMPARED TO THE END: it fits together, and nothing that was published vouches for ${sealsOf(unknown)}.`
    : `SOUND, and ${same.length === 0 ? 'nothing of it is sealed that could be compared' : `the same as published: ${sealsOf(same)}`}.`;
}

function sealsOf(numbers: readonly number[]): string {
  return `seal${numbers.length === 1 ? '' : 's'} ${numbers.join(', ')}`;
}

function collect(file: string, before: readonly string[] = []): string[] {
  return [...before, file];
}
