import { statSync } from 'node:fs';
import { type Environment, SETTINGS, type Values } from './config-settings.ts';

// Everyone can read this one: it must never protect anything but data made up for development.
export const DEVELOPMENT_MASTER_KEY: string = Buffer.from('duepost: never for real secrets!').toString(
  'base64',
);

const SHORTEST_HORIZON_MS = 120_000;
const SHORTEST_LEASE_MARGIN_MS = 2_000;

/** What not every command needs. */
export type Need = 'database' | 'broker' | 'masterKey';

const SETTING_OF: Readonly<Record<Need, string>> = {
  database: 'database.url',
  broker: 'broker.url',
  masterKey: 'masterKey',
};

/** How to come by what cannot be chosen freely. */
const HOW: Readonly<Record<string, string>> = {
  masterKey:
    'openssl rand -base64 32 makes one; keep it safe, since no secret of an endpoint can be read without it',
};

/** What no setting can see alone. */
export function checkTogether(
  env: Environment,
  values: Values,
  { needs, problems }: { needs: readonly Need[]; problems: string[] },
): void {
  const requiredHere = needs.flatMap((need) =>
    need === 'masterKey' && !isReal(env) ? [] : [SETTING_OF[need]],
  );
  for (const [name, setting] of Object.entries(SETTINGS)) {
    if (values[name] === null && (setting.optional !== true || requiredHere.includes(name))) {
      const how = HOW[name];
      problems.push(`${name} is missing: set ${setting.env}${how === undefined ? '' : ` (${how})`}`);
    }
  }
  const keys = [values['masterKey'], ...((values['previousMasterKeys'] as unknown[] | null) ?? [])];
  if (isReal(env) && keys.some((key) => typeof key === 'string' && isDevelopmentKey(key))) {
    problems.push(
      `masterKey (DUEPOST_MASTER_KEY) is the development key, which everyone can read: make one for ${env} (${HOW['masterKey']})`,
    );
  }
  if (isReal(env) && values['killPoint'] !== null) {
    problems.push(
      `killPoint (DUEPOST_KILL_POINT) kills the process: it is for development and test, not for ${env}`,
    );
  }
  const timeoutMs = values['egress.timeoutMs'];
  const leaseMs = values['claim.leaseMs'];
  if (
    typeof timeoutMs === 'number' &&
    typeof leaseMs === 'number' &&
    leaseMs < timeoutMs + SHORTEST_LEASE_MARGIN_MS
  ) {
    const least = timeoutMs + SHORTEST_LEASE_MARGIN_MS;
    problems.push(
      `claim.leaseMs (DUEPOST_CLAIM_LEASE_MS) must be at least egress.timeoutMs + ${SHORTEST_LEASE_MARGIN_MS} = ${least}, so that no claim ends during its call: value was ${leaseMs}`,
    );
  }
  const horizonMs = values['horizonMs'];
  if (env !== 'test' && typeof horizonMs === 'number' && horizonMs < SHORTEST_HORIZON_MS) {
    problems.push(
      `horizonMs (DUEPOST_HORIZON_MS) must be at least ${SHORTEST_HORIZON_MS}, except in test: value was ${horizonMs}`,
    );
  }
  if (values['telemetry.traces'] === 'otlp' && values['telemetry.otlpEndpoint'] === null) {
    problems.push(
      'telemetry.traces (DUEPOST_TELEMETRY_TRACES) is otlp, which needs telemetry.otlpEndpoint (DUEPOST_TELEMETRY_OTLP_ENDPOINT)',
    );
  }
  const calendarsDir = values['calendarsDir'];
  if (
    typeof calendarsDir === 'string' &&
    statSync(calendarsDir, { throwIfNoEntry: false })?.isDirectory() !== true
  ) {
    problems.push('calendarsDir (DUEPOST_CALENDARS_DIR) is not a folder');
  }
}

/** Whether an environment serves real customers. */
export function isReal(env: Environment): boolean {
  return env === 'staging' || env === 'production';
}

function isDevelopmentKey(key: string): boolean {
  return Buffer.from(key, 'base64').equals(Buffer.from(DEVELOPMENT_MASTER_KEY, 'base64'));
}
