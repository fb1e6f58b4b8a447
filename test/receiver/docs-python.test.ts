import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OTHER_SECRET, post, SECRET } from './signed-call.ts';

/** Prints for each Standard Webhooks vector what the program of the page decides. */
const VECTOR_HARNESS = `
import base64, email.message, json, sys
import receive
vectors = json.load(open(sys.argv[1]))["verify"]
verdicts = {}
for case in vectors:
    if case["scheme"] != "standard-webhooks" or not case["secrets"]:
        continue
    headers = email.message.Message()
    for name, value in case["headers"].items():
        headers[name] = value
    keys = [receive.read_secret(secret) for secret in case["secrets"]]
    body = base64.b64decode(case["body_base64"])
    verdicts[case["name"]] = [receive.verify(headers, body, keys, case["now"]) or "valid", case["expect"]]
print(json.dumps(verdicts))
`;

let folder: string;
let child: ChildProcess | undefined;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'receiving-python-'));
  const page = await readFile(new URL('../../docs/receiving.md', import.meta.url), 'utf8');
  await writeFile(join(folder, 'receive.py'), /```python\n(.*?)```/s.exec(page)?.[1] ?? '');
  await writeFile(join(folder, 'vectors.py'), VECTOR_HARNESS);
});

afterAll(async () => {
  child?.kill('SIGKILL');
  await rm(folder, { recursive: true, force: true });
});

async function start(): Promise<string> {
  const started = spawn('python3', ['receive.py'], {
    cwd: folder,
    env: { ...process.env, PORT: '0', WEBHOOK_SECRETS: `${OTHER_SECRET} ${SECRET}` },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  child = started;
  return new Promise((resolve, reject) => {
    createInterface({ input: started.stdout }).on('line', (line) =>
      resolve(line.replace('listening on ', '')),
    );
    started.once('error', reject);
    started.once('exit', () => reject(new Error('the program ended before it listened')));
  });
}

async function kill(): Promise<void> {
  const exited = new Promise((resolve) => child?.once('exit', resolve));
  child?.kill('SIGKILL');
  await exited;
}

describe('the Python program of docs/receiving.md', () => {
  it('agrees with the signature vectors', () => {
    const vectors = fileURLToPath(new URL('../../conformance/signatures.json', import.meta.url));
    const { stdout, stderr } = spawnSync('python3', ['vectors.py', vectors], {
      cwd: folder,
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    const verdicts = Object.entries(JSON.parse(stdout) as Record<string, [string, string]>);
    expect(verdicts.length).toBeGreaterThan(25);
    for (const [name, [given, expected]] of verdicts)
      expect(`${name}: ${given}`).toBe(`${name}: ${expected}`);
  });

  it('has one effect per key, whoever repeats it and whenever it is killed', async () => {
    const url = await start();
    const answers = await Promise.all(Array.from({ length: 12 }, () => post(url, { key: 'pol-1' })));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
    expect(new Set(answers.map(({ headers }) => headers.get('webhook-receipt')))).toEqual(
      new Set(['notice-1']),
    );

    expect((await post(url, { key: 'pol-1', body: '{"other":true}' })).status).toBe(422);
    expect((await post(url, { key: 'pol-9', webhookId: 'dlv_pol-1' })).status).toBe(422);
    expect((await post(url, {})).status).toBe(400);
    expect((await post(url, { key: 'pol-2, pol-2' })).status).toBe(400);
    expect((await post(url, { key: 'pol-2', at: new Date(0) })).status).toBe(401);
    expect((await post(url, { key: 'pol-3', body: 'not JSON' })).status).toBe(500);

    await kill();
    const again = await start();
    expect((await post(again, { key: 'pol-1' })).headers.get('webhook-receipt')).toBe('notice-1');
    expect((await post(again, { key: '"pol-2"' })).headers.get('webhook-receipt')).toBe('notice-2');
    expect(
      (await post(again, { key: 'pol-2', webhookId: 'dlv_"pol-2"' })).headers.get('webhook-receipt'),
    ).toBe('notice-2');
  });
});
