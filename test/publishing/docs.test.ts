import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import { beforeAll, expect, test } from 'vitest';
import { packageRoot } from '../../src/runtime/build-info.ts';
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
