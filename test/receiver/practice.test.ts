import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import {
  type PracticeCall,
  type PracticeReceiver,
  startPracticeReceiver,
} from '../../src/receiver/practice.ts';
import { OTHER_SECRET, post, SECRET } from './signed-call.ts';

let receiver: PracticeReceiver | undefined;
afterEach(() => receiver?.close());

type Options = Parameters<typeof startPracticeReceiver>[0];

async function start(options: Options = {}): Promise<PracticeReceiver> {
  receiver = await startPracticeReceiver({ secrets: [SECRET], ...options });
  return receiver;
}

describe('the practice receiver', () => {
  it('follows its script, repeats the last answer, and counts one effect', async () => {
    const { url, effects, calls } = await start({ answers: [503, 503, 200], retryAfterSeconds: 900 });
    const answers = [];
    for (const attempt of [1, 2, 3, 4])
      answers.push(await post(url, { key: 'k', webhookId: 'dlv_1', attempt }));

    expect(answers.map(({ status }) => status)).toEqual([503, 503, 200, 200]);
    expect(answers.map(({ headers }) => headers.get('retry-after'))).toEqual(['900', '900', null, null]);
    expect(answers.map(({ headers }) => headers.get('webhook-receipt'))).toEqual([
      null,
      null,
      'practice-1',
      'practice-1',
    ]);
    expect(calls().map(({ attempt, kind, verified }) => [attempt, kind, verified])).toEqual([
      [1, 'failed', true],
      [2, 'failed', true],
      [3, 'first', true],
      [4, 'repeat', true],
    ]);
    expect(effects()).toMatchObject([{ key: 'k', deliveryId: 'dlv_1', calls: 4 }]);
    expect(effects()[0]?.bodySha256).toMatch(/^[0-9a-f]{64}$/);
  });

  it('says why a call is refused or in conflict, and counts no effect for it', async () => {
    const { url, effects, calls, setSecrets } = await start();
    await post(url, { key: 'k', secrets: [OTHER_SECRET] });
    await post(url, {});
    await post(url, { key: 'k' });
    await post(url, { key: 'k', body: '{"other":true}' });
    setSecrets([OTHER_SECRET]);
    await post(url, { key: 'k2', secrets: [OTHER_SECRET] });

    expect(calls().map(({ kind, verified, answered }) => [kind, verified, answered])).toEqual([
      ['refused', 'no_matching_signature', 401],
      ['refused', true, 400],
      ['first', true, 200],
      ['conflict', true, 422],
      ['first', true, 200],
    ]);
    expect(effects().map(({ key }) => key)).toEqual(['k', 'k2']);
  });

  it('hangs without an effect, and goes on when told to', async () => {
    const noted: PracticeCall[] = [];
    const { url, effects, setAnswers, close } = await start({
      hang: true,
      onCall: (call) => noted.push(call),
    });
    const hanging = post(url, { key: 'k' }).catch(() => 'no answer');
    await expect.poll(() => noted).toMatchObject([{ kind: 'failed', answered: undefined }]);
    expect(effects()).toEqual([]);

    setAnswers([204]);
    expect((await post(url, { key: 'k', attempt: 2 })).status).toBe(204);
    expect(effects()).toMatchObject([{ key: 'k', calls: 2 }]);
    await close();
    expect(await hanging).toBe('no answer');
  });

  it('loses an answer after the effect, and the repeat is recognised', async () => {
    const { url, effects, calls } = await start({ answers: ['lost', 200] });
    await expect(post(url, { key: 'k' })).rejects.toThrow();
    const repeat = await post(url, { key: 'k', attempt: 2 });

    expect(repeat.status).toBe(200);
    expect(repeat.headers.get('idempotency-replayed')).toBe('true');
    expect(calls().map(({ kind, answered }) => [kind, answered])).toEqual([
      ['first', undefined],
      ['repeat', 200],
    ]);
    expect(effects()).toMatchObject([{ key: 'k', calls: 2 }]);
  });

  it('answers 409 while a slow first call is still at work', async () => {
    const { url, effects, calls } = await start({ delayMs: 300 });
    const statuses = (await Promise.all([1, 2, 3].map((attempt) => post(url, { key: 'k', attempt })))).map(
      ({ status }) => status,
    );
    expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 409, 409]);
    expect(calls().filter(({ kind }) => kind === 'conflict')).toHaveLength(2);
    expect(effects()).toMatchObject([{ key: 'k', calls: 3 }]);
  });

  it('checks no signature without a secret, and says so', async () => {
    const { url, calls } = await start({ secrets: [] });
    const response = await fetch(url, { method: 'POST', headers: { 'idempotency-key': 'k' }, body: '{}' });
    expect(response.status).toBe(200);
    expect(calls()).toMatchObject([{ key: 'k', verified: 'not_checked', kind: 'first' }]);
  });

  it('refuses more than 2 MiB, other paths, and a secret that is none', async () => {
    const { url, effects } = await start({ path: '/hooks/renewals' });
    expect((await post(url, { key: 'k', body: 'x'.repeat(2 * 1024 * 1024 + 1) })).status).toBe(413);
    expect((await post(new URL('/elsewhere', url).href, { key: 'k' })).status).toBe(404);
    expect(effects()).toEqual([]);
    expect((await post(url, { key: 'k', body: 'x'.repeat(2 * 1024 * 1024) })).status).toBe(200);
    await expect(startPracticeReceiver({ secrets: ['whsec_short'] })).rejects.toThrow(
      /24 to 64 bytes|base64/,
    );
  });

  it('starts again after a reset', async () => {
    const { url, effects, calls, reset } = await start({ answers: [500, 200] });
    await post(url, { key: 'k' });
    await post(url, { key: 'k' });
    reset();
    expect([effects(), calls()]).toEqual([[], []]);
    expect((await post(url, { key: 'k' })).status).toBe(500);
  });

  it('says that its port is taken, and frees it when closed', async () => {
    const { port, close } = await start();
    await expect(startPracticeReceiver({ port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await close();
    await close();
    const again = await startPracticeReceiver({ port });
    expect(again.port).toBe(port);
    await again.close();
  });

  it('survives callers who hang up at any moment', async () => {
    const { port, url, effects } = await start();
    for (const text of ['', 'POST / HT', 'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n{']) {
      await new Promise<void>((resolve) => {
        const socket = connect(port, '127.0.0.1', () => socket.end(text, () => socket.destroy()));
        socket.once('close', () => resolve());
      });
    }
    expect((await post(url, { key: 'k' })).status).toBe(200);
    expect(effects()).toHaveLength(1);
  });

  it('keeps a ledger of thousands of calls: one effect per key, every call counted', async () => {
    const { url, effects, calls } = await start();
    const keys = Array.from({ length: 1000 }, (_, n) => `k-${n}`);
    for (const attempt of [1, 2, 3]) {
      for (let from = 0; from < keys.length; from += 50) {
        await Promise.all(keys.slice(from, from + 50).map((key) => post(url, { key, attempt })));
      }
    }
    expect(calls()).toHaveLength(3000);
    expect(
      effects()
        .map(({ key }) => key)
        .toSorted(),
    ).toEqual(keys.toSorted());
    expect(new Set(effects().map((effect) => effect.calls))).toEqual(new Set([3]));
  });
});
