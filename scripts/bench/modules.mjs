// Where the product and its packages are loaded from.

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** This checkout. */
export const root = fileURLToPath(new URL('../..', import.meta.url));

/** A package that the product depends on. */
export function importFrom(name, folder = root) {
  return import(pathToFileURL(createRequire(join(folder, 'package.json')).resolve(name)).href);
}

/** A module of a built product, by its path below `dist`. */
export function importProduct(path, folder = root) {
  return import(pathToFileURL(join(folder, 'dist', path)).href);
}
