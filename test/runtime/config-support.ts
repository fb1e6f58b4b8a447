import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { findNearest } from '../../src/domain/nearest.ts';
import { ConfigError, loadConfig } from '../../src/runtime/config.ts';

export const DATABASE_URL = 'postgres://duepost@127.0.0.1:5432/duepost';
export const AMQP_URL = 'amqp://guest:guest@127.0.0.1:5672';
export const SERVERS = { DUEPOST_DATABASE_URL: DATABASE_URL, DUEPOST_AMQP_URL: AMQP_URL };

export const HOW_TO_MAKE_ONE =
  ' (openssl rand -base64 32 makes one; keep it safe, since no secret of an endpoint can be read without it)';

/** A folder for the tests of a file, and what writes into it. */
export function useFolder(): { path(): string; write(name: string, text: string): string } {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'duepost-config-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));
  return {
    path: () => folder,
    write(name, text) {
      const path = join(folder, name);
      writeFileSync(path, text);
      return path;
    },
  };
}

/** What is wrong with these variables and this file. */
export function problemsOf(env: NodeJS.ProcessEnv, file?: string): readonly string[] {
  try {
    loadConfig({ findNearest, env: { ...SERVERS, ...env }, ...(file !== undefined && { file }) });
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

/** The dotted names of everything in a nested object. */
export function leavesOf(value: Record<string, unknown>, path = ''): string[] {
  return Object.entries(value).flatMap(([key, child]) =>
    typeof child === 'object' && child !== null && !Array.isArray(child)
      ? leavesOf(child as Record<string, unknown>, `${path}${key}.`)
      : [`${path}${key}`],
  );
}
