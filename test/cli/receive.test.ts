import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { startCli } from '../support/cli.ts';

test('receives as told, tells each call and counts effects at the end', async () => {
  const running = startCli(['receive', '--answer', '503,200', '--retry-after', '7', '--json']);
  const said = await running.says('"listening"');
  const url: string = JSON.parse(said).listening;
  const key = randomBytes(8).toString('hex');
  const call = (): Promise<Response> =>
    fetch(url, { method: 'POST', headers: { 'idempotency-key': key, 'webhook-id': 'dlv_x' }, body: '{}' });
  const first = await call();
  expect([first.status, first.headers.get('retry-after')]).toEqual([503, '7']);
  expect((await call()).status).toBe(200);
  expect((await call()).status).toBe(200);
  running.child.kill('SIGINT');
  const { code, stdout } = await running.ended;
  expect(code).toBe(0);
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines.slice(1)).toMatchObject([
    { answered: 503, kind: 'failed', delivery_id: 'dlv_x', verified: 'not_checked' },
    { answered: 200, kind: 'first', idempotency_key: key },
    { answered: 200, kind: 'repeat' },
    { summary: { calls: 3, effects: 1, repeats: 1, failed: 1 } },
  ]);
});

test('checks signatures when it knows a secret, and tells people so', async () => {
  const secret = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;
  const running = startCli(['receive', '--secret', secret]);
  const url = /http:\S+/.exec(await running.says('listening'))?.[0] ?? '';
  const answer = await fetch(url, { method: 'POST', headers: { 'idempotency-key': 'k' }, body: '{}' });
  expect(answer.status).toBe(400);
  running.child.kill('SIGTERM');
  const { stdout, code } = await running.ended;
  expect(code).toBe(0);
  expect(stdout).toMatch(/400 .*refused/);
  expect(stdout).not.toContain(secret);
});
