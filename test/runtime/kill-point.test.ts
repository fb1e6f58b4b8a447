import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../src/runtime/build-info.ts';
import { loadConfig } from '../../src/runtime/config.ts';
import { armKillPoint, KILL_POINTS, killPoint } from '../../src/runtime/kill-point.ts';

test('every point is passed somewhere', () => {
  const sources = readdirSync(join(packageRoot, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => readFileSync(join(packageRoot, 'src', file), 'utf8'))
    .join('\n');
  expect(KILL_POINTS.filter((name) => !sources.includes(`killPoint('${name}')`))).toEqual([]);
});

test('nothing dies unless it was told to', () => {
  armKillPoint(undefined);
  for (const name of KILL_POINTS) killPoint(name);
  armKillPoint('ack.due:2');
  killPoint('ack.due');
  killPoint('ack.sent');
  armKillPoint(undefined);
});

test('the process dies by SIGKILL at the passing that was asked for', () => {
  const program = `
    import { armKillPoint, killPoint } from './dist/runtime/kill-point.js';
    armKillPoint('ack.due:3');
    for (const pass of [1, 2, 3, 4]) {
      console.log(pass);
      killPoint('ack.due');
    }`;
  const died = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    cwd: packageRoot,
    encoding: 'utf8',
  });
  expect({ signal: died.signal, said: died.stdout }).toEqual({ signal: 'SIGKILL', said: '1\n2\n3\n' });
});

test.each(['staging', 'production'])('%s refuses a kill point', (env) => {
  const load = () => loadConfig({ env: { DUEPOST_ENV: env, DUEPOST_KILL_POINT: 'ack.due' }, needs: [] });
  expect(load).toThrow(/killPoint \(DUEPOST_KILL_POINT\) kills the process/);
});

test('a point that does not exist is refused by name', () => {
  const load = () => loadConfig({ env: { DUEPOST_KILL_POINT: 'ack.never' }, needs: [] });
  expect(load).toThrow(/DUEPOST_KILL_POINT/);
});
