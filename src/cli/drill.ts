import { type Command, InvalidArgumentError } from 'commander';
import { inScope } from '../runtime/scope.ts';
import { CheckFailed } from './check-failed.ts';
import { type CommonOptions, type Context, inContext, withCommonOptions } from './context.ts';
import { type Drill, type Finding, isAsExpected } from './drills/drill.ts';
import { duplicate } from './drills/duplicate.ts';
import { killWorker } from './drills/kill-worker.ts';
import { moveRenewal } from './drills/move-renewal.ts';
import { retryAfter } from './drills/retry-after.ts';
import { openStand, requirePractice } from './drills/stand.ts';
import { unavailable } from './drills/unavailable.ts';

const DRILLS: readonly Drill[] = [killWorker, duplicate, retryAfter, unavailable, moveRenewal];

interface DrillReport {
  readonly name: string;
  readonly title: string;
  readonly ok: boolean;
  readonly duration_ms: number;
  readonly findings: readonly (Finding & { readonly ok: boolean })[];
  /** Why it could not be brought about; undefined: it was. */
  readonly error?: string;
}

/** `duepost drill [name]`. */
export function addDrill(program: Command): void {
  withCommonOptions(program.command('drill'))
    .description(
      'bring about failures on purpose and show what came of them; exit code 1 if it is not what it must be',
    )
    .argument('[name]', `one of ${DRILLS.map(({ name }) => name).join(', ')}; all if left out`, parseName)
    .addHelpText('after', describeDrills())
    .action((chosen: Drill | undefined, options: CommonOptions) =>
      inContext(options, async (context) => {
        requirePractice(context.config, 'a drill');
        const reports: DrillReport[] = [];
        for (const drill of chosen === undefined ? DRILLS : [chosen]) {
          const report = await runDrill(drill, context);
          reports.push(report);
          if (!context.json) context.print(report, () => formatReport(report));
        }
        const ok = reports.every((report) => report.ok);
        const failed = reports.filter((report) => !report.ok).map((report) => report.name);
        context.print({ ok, drills: reports }, () =>
          ok ? `all as expected: ${reports.length} of ${reports.length}` : `failed: ${failed.join(', ')}`,
        );
        if (!ok) throw new CheckFailed();
      }),
    );
}

function parseName(name: string): Drill {
  const found = DRILLS.find((drill) => drill.name === name);
  if (found !== undefined) return found;
  throw new InvalidArgumentError(`known are ${DRILLS.map((drill) => drill.name).join(', ')}`);
}

function describeDrills(): string {
  return `\nDrills:\n${DRILLS.map(({ name, title }) => `  ${name.padEnd(14)} ${title}`).join('\n')}`;
}

async function runDrill(drill: Drill, { config, log, actor }: Context): Promise<DrillReport> {
  const { name, title } = drill;
  const startedAtMs = performance.now();
  let findings: Finding[] = [];
  let error: string | undefined;
  try {
    const stop = await inScope(async (scope) => {
      findings = await drill.run(await openStand(scope, { config, log, actor }));
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
    ...(error === undefined ? {} : { error }),
  };
}

function formatReport({ name, title, findings, error, ...report }: DrillReport): string {
  const width = Math.max(0, ...findings.map(({ what }) => what.length));
  return [
    `${report.ok ? 'ok    ' : 'FAILED'}  ${name}: ${title} (${(report.duration_ms / 1000).toFixed(1)} s)`,
    ...findings.map(
      ({ what, expected, seen, ok }) =>
        `  ${ok ? '  ' : '! '}${what.padEnd(width)}  expected ${expected}, seen ${seen}`,
    ),
    ...(error === undefined ? [] : [`  ! could not be brought about: ${error}`]),
    '',
  ].join('\n');
}
