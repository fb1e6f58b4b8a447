import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { describe, expect, it } from 'vitest';

import { probe } from './host-probe.ts';

const CHILD = `
  import { createHash } from 'node:crypto';
  import { runnerImport } from 'vite';
  const { module } = await runnerImport(process.argv[1], { configFile: false });
  const sha256 = createHash('sha256').update(module.probe()).digest('hex');
  process.stdout.write(JSON.stringify({ sha256, clock: module.hostClock() }));
`;

/** Computes in a process of its own, since a host's zone and locale are settled when one starts. */
async function probeUnder(settings: Record<string, string>): Promise<{ sha256: string; clock: string }> {
  const file = fileURLToPath(new URL('./host-probe.ts', import.meta.url));
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '--eval', CHILD, file],
    { env: { ...process.env, ...settings } },
  );
  return JSON.parse(stdout) as { sha256: string; clock: string };
}

describe('the host', () => {
  it('B137: changes no due date, step or hash by its zone or language', { timeout: 120_000 }, async () => {
    const here = createHash('sha256').update(probe()).digest('hex');
    const clocks = new Set<string>();
    for (const settings of [
      { TZ: 'UTC', LANG: 'C', LC_ALL: 'C' },
      { TZ: 'America/St_Johns', LANG: 'en_CA.UTF-8', LC_ALL: 'en_CA.UTF-8' },
      { TZ: 'Pacific/Apia', LANG: 'tr_TR.UTF-8', LC_ALL: 'tr_TR.UTF-8' },
      { TZ: 'Asia/Kathmandu', LANG: 'ar_EG.UTF-8', LC_ALL: 'ar_EG.UTF-8' },
      { TZ: 'Africa/Casablanca', LANG: 'de_DE.UTF-8', LC_ALL: 'de_DE.UTF-8' },
    ]) {
      const { sha256, clock } = await probeUnder(settings);
      expect(sha256, settings.TZ).toBe(here);
      clocks.add(clock);
    }
    expect(clocks.size).toBe(5);
  });
});
