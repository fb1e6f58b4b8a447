import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import { beforeAll, expect, test } from 'vitest';
import { packageRoot } from '../../src/runtime/build-info.ts';
import { openAmqpClient } from '../support/amqp-client.ts';
import { runCli } from '../support/cli.ts';
import { openTestProduct } from '../support/product.ts';
import { asyncApiDocument } from './asyncapi.ts';

let page: string;

beforeAll(async () => {
  page = await readFile(join(packageRoot, 'docs/publishing.md'), 'utf8');
});

/** The blocks of a language on the page. */
function blocks(language: string): string[] {
  return [...page.matchAll(new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 'gs'))].map((m) => m[1] as string);
}

test.each([
  ['js', 'node/publish.mjs'],
  ['python', 'python/publish.py'],
  ['go', 'go/publish.go'],
  ['java', 'java/Publish.java'],
])('the %s program of docs/publishing.md is examples/publishing/%s', async (language, path) => {
  const program = await readFile(join(packageRoot, 'examples/publishing', path), 'utf8');
  expect(blocks(language)).toEqual([program]);
});

test('the commands of docs/publishing.md are accepted one after the other, after those of the README', async () => {
  const product = await openTestProduct({ roles: ['ingress'] });
  const client = await openAmqpClient(product);
  const readme = await readFile(join(packageRoot, 'README.md'), 'utf8');
  const shown = readme.slice(readme.indexOf('## Use it')).replaceAll('\\\n', ' ');
  for (const command of ['endpoint create', 'remind', 'deliveries list', 'audit show', 'key create']) {
    const line = new RegExp(`^npx duepost (${command}.*)$`, 'm').exec(shown)?.[1] ?? '';
    const args = line.replace(/ #.*/, '').trim().split(/\s+/);
    expect(await runCli(args, product.env)).toMatchObject({ code: 0 });
  }
  const names = ['reminder.schedule', 'reminder.reschedule', 'reminder.cancel', 'event.publish'];
  const answers = [];
  for (const [i, name] of names.entries())
    answers.push(await client.call(name, Buffer.from(blocks('json')[i] ?? ''), {}));
  expect(answers).toEqual(names.map(() => expect.objectContaining({ ok: true, duplicate: false })));
  await client.close();
  await product.close();
});

test('the commands and the notification of docs/publishing.md are as docs/asyncapi.json has them', () => {
  const { components } = asyncApiDocument() as {
    components: { messages: Record<string, { payload: object }> };
  };
  const ajv = new Ajv({ strict: false });
  addFormats.default(ajv);
  const messages = [
    'reminderSchedule',
    'reminderReschedule',
    'reminderCancel',
    'eventPublish',
    'deliveryDeadLettered',
  ];
  const verdicts = blocks('json').map((text, index) =>
    ajv.validate(components.messages[messages[index] as string]?.payload ?? false, JSON.parse(text)),
  );
  expect(verdicts).toEqual(messages.map(() => true));
});
