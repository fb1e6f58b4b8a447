import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The folder of package.json, `config` and `migrations`; this file lies two folders below, in `src` as in `dist`. */
export const packageRoot: string = fileURLToPath(new URL('../../', import.meta.url));

/** The version of this package, as in package.json. */
export const version: string = readVersion();

function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  if (typeof manifest === 'object' && manifest !== null && 'version' in manifest)
    return String(manifest.version);
  throw new Error('package.json has no version');
}
