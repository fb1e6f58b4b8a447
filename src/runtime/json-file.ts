import { readFileSync } from 'node:fs';

/** A file of JSON, or one line that says why it is none. */
export type JsonFile =
  | { readonly value: unknown; readonly problem?: never }
  | { readonly problem: string; readonly missing: boolean };

/**
 * Reads a JSON file and refuses keys that occur twice, of which `JSON.parse` would silently keep the last.
 *
 * The problem never quotes the text: it may hold something that is not for everyone.
 */
export function readJsonFile(path: string): JsonFile {
  let text: string;
  try {
    text = readFileSync(path, 'utf8').replace(/^\uFEFF/, '');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    return { problem: `cannot be read (${code ?? 'unknown error'})`, missing: code === 'ENOENT' };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { problem: `is not valid JSON${whereIn(text, error)}`, missing: false };
  }
  const repeated = findRepeatedKey(text);
  return repeated === undefined ? { value } : { problem: `has the key ${repeated} twice`, missing: false };
}

function whereIn(text: string, error: unknown): string {
  const position = /at position (\d+)/.exec(String(error))?.[1];
  if (position === undefined) return '';
  return `, see line ${text.slice(0, Number(position)).split('\n').length}`;
}

/** The path of the first key that occurs twice in its object; `text` must be valid JSON. */
function findRepeatedKey(text: string): string | undefined {
  const open: { path: string; keys: Set<string>; key: string }[] = [];
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?|[{}[\]]/g)) {
    const current = open.at(-1);
    if (token === '{' || token === '[') {
      const path = current === undefined ? '' : `${current.path}${current.key}`;
      open.push({ path: path === '' ? '' : `${path}.`, keys: new Set(), key: '' });
    } else if (token === '}' || token === ']') {
      open.pop();
    } else if (token.endsWith(':') && current !== undefined) {
      current.key = JSON.parse(token.slice(0, -1)) as string;
      if (current.keys.has(current.key)) return `${current.path}${current.key}`;
      current.keys.add(current.key);
    }
  }
  return undefined;
}
