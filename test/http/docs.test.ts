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

test('docs/api.md lists the calls that docs/openapi.json has, each with its scope and its query', () => {
  const page = readFileSync(join(packageRoot, 'docs/api.md'), 'utf8');
  const rows = [...page.matchAll(/^\| `([A-Z]+ \/\S+)` \| (.*?) \| (.*)$/gm)];
  const document = JSON.parse(readFileSync(join(packageRoot, 'docs/openapi.json'), 'utf8')) as Document;
  const calls = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      call: `${method.toUpperCase()} ${path}`,
      scope: operation.description?.match(/Needs a key with the scope (.*)\.$/)?.[1] ?? 'none',
      query: (operation.parameters ?? []).filter((p) => p.in === 'query').map((p) => p.name),
    })),
  );
  expect(new Map(rows.map(([, call, scope]) => [call, scope]))).toEqual(
    new Map(calls.map(({ call, scope }) => [call, scope])),
  );
  for (const { call, query } of calls) {
    const told = rows.find((row) => row[1] === call)?.[3];
    for (const name of query.filter((n) => n !== 'limit' && n !== 'cursor'))
      expect(told, call).toContain(`\`${name}\``);
  }
});

interface Document {
  readonly paths: Readonly<
    Record<
      string,
      Record<
        string,
        { readonly description?: string; readonly parameters?: readonly { in: string; name: string }[] }
      >
    >
  >;
}
