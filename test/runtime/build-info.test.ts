import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { packageRoot, version } from '../../src/runtime/build-info.ts';

it('knows the version and where the files of the package are', () => {
  expect(version).toBe(manifest.version);
  expect(existsSync(join(packageRoot, 'config/default.json'))).toBe(true);
});
