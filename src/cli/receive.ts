import { type Command, InvalidArgumentError } from 'commander';
import {
  type PracticeCall,
  type PracticeReceiver,
  type ScriptedAnswer,
  startPracticeReceiver,
} from '../receiver/practice.ts';
import { readList, readWhole } from './arguments.ts';
import { withExamples } from './context.ts';
import { formatCell, formatFields, writeAnswer } from './print.ts';

interface ReceiveOptions {
  readonly port: number;
  readonly answer?: ScriptedAnswer[];
  readonly retryAfter?: number;
  readonly secret?: string[];
  readonly json?: boolean;
}

/** `duepost receive`: a receiver to try with; needs neither servers nor configuration. */
export function addReceive(program: Command): void {
  const command = program
    .command('receive')
    .description('a practice receiver: prints each call, answers as told, counts effects; Ctrl-C ends it')
    .option('--port <n>', '0: any that is free', readWhole(0, 65_535), 0)
    .option(
      '--answer <list>',
      'one for each call, the last repeats: a status, hang (no answer) or lost (done, but the answer gets lost); 200 if left out',
      readAnswers,
    )
    .option('--retry-after <seconds>', 'sent with every answer that is no 2xx', readWhole(0, 10_000_000))
    .option('--secret <secret>', 'check signatures with this whsec_…; may be given several times', readList)
    .option('--json', 'answer with JSON on stdout, one line for each call')
    .action((options: ReceiveOptions) => receive(options));
  withExamples(
    command,
    'duepost receive --port 9000',
    'duepost receive --port 9000 --answer 503,503,200 --retry-after 2 --secret whsec_…',
    'duepost receive --answer hang',
  );
}

async function receive(options: ReceiveOptions): Promise<void> {
  const json = options.json ?? false;
  const ended = nextEnd();
  const receiver = await startPracticeReceiver({
    port: options.port,
    answers: options.answer,
    retryAfterSeconds: options.retryAfter,
    secrets: options.secret,
    onCall: (call) => writeAnswer(callView(call), json ? undefined : () => formatCall(call), true),
  });
  writeAnswer({ listening: receiver.url }, json ? undefined : () => `listening on ${receiver.url}`, true);
  await ended;
  await receiver.close();
  const summary = summarize(receiver);
  writeAnswer({ summary }, json ? undefined : () => `\n${formatFields(summary)}`, true);
}

function nextEnd(): Promise<void> {
  return new Promise((resolve) => {
    process.once('SIGINT', () => resolve());
    process.once('SIGTERM', () => resolve());
    // Nobody reads any more.
    process.stdout.once('error', () => resolve());
  });
}

function readAnswers(text: string): ScriptedAnswer[] {
  return readList(text).map((word) => {
    if (word === 'hang' || word === 'lost') return word;
    if (/^[2-5]\d\d$/.test(word)) return Number(word);
    throw new InvalidArgumentError(`${word} is no status from 200 to 599, nor hang or lost.`);
  });
}

function callView(call: PracticeCall): Record<string, unknown> {
  return {
    at: call.at,
    delivery_id: call.deliveryId ?? null,
    attempt: call.attempt ?? null,
    idempotency_key: call.key ?? null,
    body_sha256: call.bodySha256,
    verified: call.verified,
    answered: call.answered ?? null,
    kind: call.kind,
  };
}

const TOLD: Readonly<Record<PracticeCall['kind'], string>> = {
  first: 'took effect',
  repeat: 'repeated, no further effect',
  conflict: 'conflict',
  failed: 'no effect',
  refused: 'refused',
};

function formatCall(call: PracticeCall): string {
  const signature = call.verified === true ? 'signed' : call.verified.replaceAll('_', ' ');
  const answer = call.answered === undefined ? 'no answer' : String(call.answered);
  return [
    call.at.toISOString(),
    answer.padEnd(9),
    TOLD[call.kind],
    `attempt ${call.attempt ?? '-'}`,
    formatCell(call.deliveryId),
    `key ${formatCell(call.key)}`,
    signature,
  ].join('  ');
}

function summarize(receiver: PracticeReceiver): Record<string, number> {
  const calls = receiver.calls();
  const count = (kind: PracticeCall['kind']): number => calls.filter((call) => call.kind === kind).length;
  return {
    calls: calls.length,
    effects: receiver.effects().length,
    repeats: count('repeat'),
    failed: count('failed'),
    conflicts: count('conflict'),
    refused: count('refused'),
  };
}
