import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../src/runtime/build-info.ts';

/** Where a warning or an error is written under its own name; a name that is put together has `<…>` where the part is. */
const WRITTEN = /\blog\??\.(?:warn|error|fault)\(\s*(?:'([^']+)'|`([^`]+)`)/g;
/** The log's own, of whatever level the line was that it stands for. */
const OF_THE_LOG = 'log.unreadable';

test('docs/logs.md tells of every event that is a warning or an error, and of no other', () => {
  const page = readFileSync(join(packageRoot, 'docs/logs.md'), 'utf8');
  const told = [...page.matchAll(/^\| `([^`]+)` \|/gm)].map(([, event]) => event);
  expect(told).toEqual([...writtenEvents(), OF_THE_LOG].toSorted());
});

function writtenEvents(): Set<string> {
  const source = join(packageRoot, 'src');
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((f) => f.endsWith('.ts'));
  const events = new Set<string>();
  for (const file of files) {
    for (const [, plain, pattern] of readFileSync(join(source, file), 'utf8').matchAll(WRITTEN))
      events.add(plain ?? (pattern as string).replace('${name}', '<loop>'));
  }
  return events;
}
