import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { PROBLEMS } from '../../src/http/problems.ts';
import { packageRoot } from '../../src/runtime/build-info.ts';

test('docs/api.md names every code with its status', () => {
  const text = readFileSync(join(packageRoot, 'docs/api.md'), 'utf8');
  const rows = [...text.slice(text.indexOf('## Codes')).matchAll(/^\| ([\d, ]+) \| (.*) \|$/gm)];
  const told = rows.flatMap(([, statuses = '', codes = '']) =>
    [...codes.matchAll(/`([a-z_]+)`/g)].map(([, code]) => ({
      statuses: statuses.split(', ').map(Number),
      code,
    })),
  );
  expect(new Set(told.map(({ code }) => code))).toEqual(new Set(Object.keys(PROBLEMS)));
  for (const { code, statuses } of told)
    expect(statuses).toContain(PROBLEMS[code as keyof typeof PROBLEMS].status);
});
