import { type Command, InvalidArgumentError } from 'commander';
import { parseSecret } from '../../domain/signing.ts';
import { inScope } from '../../runtime/scope.ts';
import { CheckFailed } from '../check-failed.ts';
import { type CommonOptions, type Context, inContext, withCommonOptions, withExamples } from '../context.ts';
import { type Drill, type Finding, isAsExpected } from './drill.ts';
import { duplicate } from './duplicate.ts';
import { killWorker } from './kill-worker.ts';
import { moveRenewal } from './move-renewal.ts';
import type { HandedOn } from './receiver.ts';
import { type DrillReport, formatReport, toCheck } from './report.ts';
import { retryAfter } from './retry-after.ts';
import { openStand, requirePractice, type Service } from './stand.ts';
import { unavailable } from './unavailable.ts';

const DRILLS: readonly Drill[] = [killWorker, duplicate, retryAfter, unavailable, moveRenewal];

interface DrillOptions extends CommonOptions {
  readonly forward?: URL;
  readonly secret?: string;
}

/** `duepost drill [name]`. */
export function addDrill(program: Command): void {
  const command = withCommonOptions(program.command('drill'))
    .description(
      'bring about failures on purpose and show what came of them; exit code 1 if it is not what it must be',
    )
    .argument('[name]', `one of ${DRILLS.map(({ name }) => name).join(', ')}; all if left out`, parseName)
    .option(
      '--forward <url>',
      'hand the calls on to a service of yours, and say what its own record must show',
      readUrl,
    )
    .option('--secret <secret>', 'the whsec_… that this service verifies by')
    .addHelpText('after', describeDrills())
    .action((chosen: Drill | undefined, options: DrillOptions, self: Command) => {
      const { forward, secret } = options;
      if ((forward === undefined) !== (secret === undefined))
        self.error('error: --forward and --secret belong together', { exitCode: 2 });
      const service = forward === undefined || secret === undefined ? undefined : { url: forward, secret };
      return inContext(options, async (context) => {
        requirePractice(context.config, 'a drill');
        if (service !== undefined) parseSecret(service.secret);
        const reports: DrillReport[] = [];
        for (const drill of chosen === undefined ? DRILLS : [chosen]) {
          const report = await runDrill(drill, context, service);
          reports.push(report);
          if (!context.json) context.print(report, () => formatReport(report));
        }
        const ok = reports.every((report) => report.ok);
        const failed = reports.filter((report) => !report.ok).map((report) => report.name);
        context.print({ ok, drills: reports }, () =>
          ok ? `all as expected: ${reports.length} of ${reports.length}` : `failed: ${failed.join(', ')}`,
        );
        if (!ok) throw new CheckFailed();
      });
    });
  withExamples(
    command,
    'duepost drill',
    'duepost drill duplicate',
    'duepost drill --forward http://127.0.0.1:9000/hooks --secret whsec_…',
  );
}

function readUrl(text: string): URL {
  if (URL.canParse(text) && /^https?:/.test(text)) return new URL(text);
  throw new InvalidArgumentError('It must be a URL such as http://127.0.0.1:9000/hooks.');
}

function parseName(name: string): Drill {
  const found = DRILLS.find((drill) => drill.name === name);
  if (found !== undefined) return found;
  throw new InvalidArgumentError(`known are ${DRILLS.map((drill) => drill.name).join(', ')}`);
}

function describeDrills(): string {
  return `\nDrills:\n${DRILLS.map(({ name, title }) => `  ${name.padEnd(14)} ${title}`).join('\n')}`;
}

async function runDrill(
  drill: Drill,
  { config, log, actor }: Context,
  service: Service | undefined,
): Promise<DrillReport> {
  const { name, title } = drill;
  const startedAtMs = performance.now();
  let findings: Finding[] = [];
  let handedOn: readonly HandedOn[] = [];
  let error: string | undefined;
  try {
    const stop = await inScope(async (scope) => {
      const stand = await openStand(scope, { config, log, actor, service });
      findings = await drill.run(stand);
      handedOn = stand.handedOn();
    });
    await stop();
  } catch (fault) {
    error = fault instanceof Error ? fault.message : String(fault);
  }
  return {
    name,
    title,
    ok: error === undefined && findings.every(isAsExpected),
    duration_ms: Math.round(performance.now() - startedAtMs),
    findings: findings.map((f) => ({ ...f, ok: isAsExpected(f) })),
    ...(service === undefined ? {} : { to_check: handedOn.map(toCheck) }),
    ...(error === undefined ? {} : { error }),
  };
}
