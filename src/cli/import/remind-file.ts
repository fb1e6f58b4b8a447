import { closeSync, openSync, writeSync } from 'node:fs';
import { Refusal } from '../../domain/refusal.ts';
import { ENVELOPE_BYTES } from '../../domain/requests/body.ts';
import { readReminder } from '../../pipeline/accept/read-requests.ts';
import type { ReminderAcceptor } from '../../pipeline/accept/reminders.ts';
import { escapeUnprintable } from '../../runtime/scrub.ts';
import { CheckFailed } from '../check-failed.ts';
import { complain } from '../complain.ts';
import type { Context } from '../context.ts';
import { formatCell, formatFields, writeAnswer } from '../print.ts';
import { importFile, type RowResult, sizeOf } from './import-file.ts';
import { type Progress, startProgress } from './progress.ts';
import { reminderKey } from './reminder-key.ts';

export interface RemindFileOptions {
  readonly file: string;
  /** Members that rows may leave out. */
  readonly defaults: Readonly<Record<string, unknown>>;
  readonly dryRun: boolean;
  /** Where each refused row leaves a line of JSON. */
  readonly report: string | undefined;
  readonly openAcceptor: () => Promise<ReminderAcceptor>;
}

/** What became of an accepted row. */
interface Accepted {
  readonly dueAt: Date;
  readonly deadlineAt: Date;
  readonly timeZone: string;
  readonly duplicate: boolean;
}

/** How many refusals are told on stderr where no report keeps them. */
const TOLD = 10;

/** Schedules every reminder of a file; throws CheckFailed when a row was refused. */
export async function remindFile(context: Context, options: RemindFileOptions): Promise<void> {
  const { config, json, print } = context;
  const size = sizeOf(options.file);
  const acceptor = await options.openAcceptor();
  const reportTo = options.report === undefined ? undefined : openSync(options.report, 'w');
  const stopping = new AbortController();
  const stop = (): void => stopping.abort();
  process.once('SIGINT', stop).once('SIGTERM', stop);
  // Where the rows themselves are shown, a bar would stand between them.
  const progress = options.dryRun && process.stdout.isTTY ? undefined : startProgress(size, 'rows');
  const counts = { rows: 0, accepted: 0, duplicates: 0, refused: 0 };

  function onResult({ row, result }: RowResult<Accepted>): void {
    counts.rows += 1;
    if (result instanceof Refusal) {
      counts.refused += 1;
      const refused = describeRefused(row, result);
      if (reportTo !== undefined) writeSync(reportTo, `${escapeUnprintable(JSON.stringify(refused))}\n`);
      else if (!options.dryRun && counts.refused <= TOLD) tell(progress, formatRefused(refused));
      if (options.dryRun) writeAnswer(refused, json ? undefined : () => formatRefused(refused), true);
    } else {
      counts[result.duplicate ? 'duplicates' : 'accepted'] += 1;
      if (options.dryRun) writeAnswer(...describePlanned(row, result, json), true);
    }
    progress?.update(row.endByte, counts.rows);
  }

  try {
    await importFile<Accepted>({
      ...options,
      maxLineBytes: config.limits.maxPayloadBytes + ENVELOPE_BYTES,
      signal: stopping.signal,
      take: (row) => take(row, acceptor, { context, dryRun: options.dryRun }),
      onResult,
    });
  } finally {
    progress?.stop();
    process.off('SIGINT', stop).off('SIGTERM', stop);
    if (reportTo !== undefined) closeSync(reportTo);
  }
  const stopped = stopping.signal.aborted;
  const summary = { file: options.file, dry_run: options.dryRun, stopped, ...counts };
  const refused = refusedOf(counts.refused, options);
  print(summary, () =>
    options.dryRun
      ? `${formatFields({ rows: counts.rows, 'would be accepted': counts.accepted, refused })}\nnothing was stored`
      : formatFields({ ...counts, refused }),
  );
  if (stopped) complain('stopped: run the same command again, what is stored already is recognised');
  if (stopped || counts.refused > 0) throw new CheckFailed();
}

async function take(
  row: Record<string, unknown>,
  acceptor: ReminderAcceptor,
  { context, dryRun }: { readonly context: Context; readonly dryRun: boolean },
): Promise<Accepted> {
  const { contract_ref: contract, renewal_date: date } = row;
  const request = readReminder(row, {
    outerKey:
      typeof contract === 'string' && typeof date === 'string' ? reminderKey(contract, date) : undefined,
    actor: context.actor,
    maxPayloadBytes: context.config.limits.maxPayloadBytes,
  });
  if (dryRun) return { ...(await acceptor.plan(request)), duplicate: false };
  const { reminder, duplicate } = await acceptor.schedule(request);
  return { ...reminder, duplicate };
}

type Row = RowResult<unknown>['row'];

interface Refused {
  readonly line: number;
  readonly contract_ref: unknown;
  readonly code: string;
  readonly detail: string;
  readonly errors: Refusal['faults'];
}

function describeRefused({ line, content }: Row, refusal: Refusal): Refused {
  const contract = content instanceof Refusal ? null : (content['contract_ref'] ?? null);
  return {
    line,
    contract_ref: contract,
    code: refusal.code,
    detail: refusal.message,
    errors: refusal.faults,
  };
}

function formatRefused({ line, contract_ref, code, detail }: Refused): string {
  return `line ${line}  ${formatCell(contract_ref)}  refused (${code}): ${formatCell(detail)}`;
}

function describePlanned(
  { line, content }: Row,
  { dueAt, deadlineAt, timeZone }: Accepted,
  json: boolean,
): [unknown, (() => string) | undefined] {
  const contract = content instanceof Refusal ? undefined : content['contract_ref'];
  const planned = {
    line,
    contract_ref: contract,
    due_at: dueAt,
    deadline_at: deadlineAt,
    time_zone: timeZone,
  };
  const text = `line ${line}  ${formatCell(contract)}  due ${dueAt.toISOString()}  deadline ${deadlineAt.toISOString()}  ${timeZone}`;
  return [planned, json ? undefined : () => text];
}

function refusedOf(count: number, { report, dryRun }: RemindFileOptions): string {
  if (count === 0 || dryRun) return String(count);
  if (report !== undefined) return `${count}  (see ${report})`;
  return count > TOLD ? `${count}  (the first ${TOLD} are above; --report keeps all)` : String(count);
}

/** A line of its own, although a bar may stand on the last one. */
function tell(progress: Progress | undefined, text: string): void {
  if (progress !== undefined && process.stderr.isTTY) process.stderr.write('\r\x1b[2K');
  complain(text);
}
