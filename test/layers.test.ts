import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../src/runtime/build-info.ts';

const SRC = join(packageRoot, 'src');

/** What each folder may import beside itself. Runtime is the floor: it imports nothing, and anyone but domain stands on it. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  main: ['cli'],
  cli: [
    'roles',
    'http',
    'commands',
    'pipeline',
    'store',
    'broker',
    'egress',
    'domain',
    'receiver',
    'runtime',
  ],
  roles: ['http', 'commands', 'pipeline', 'store', 'broker', 'egress', 'domain', 'runtime'],
  http: ['pipeline', 'store', 'broker', 'egress', 'domain', 'runtime'],
  commands: ['pipeline', 'store', 'broker', 'egress', 'domain', 'runtime'],
  pipeline: ['store', 'broker', 'egress', 'domain', 'runtime'],
  store: ['domain', 'runtime'],
  broker: ['domain', 'runtime'],
  egress: ['domain', 'runtime'],
  receiver: ['domain'],
  domain: [],
  runtime: [],
};

/** The one home of each package; a package that is missing here has none yet. The receiver's adapters take types only. */
const HOMES: Readonly<Record<string, readonly string[]>> = {
  pg: ['store'],
  'node-pg-migrate': ['store'],
  amqplib: ['broker'],
  'node-fetch': ['egress'],
  undici: ['egress'],
  'ipaddr.js': ['egress'],
  luxon: ['domain'],
  'date-holidays': ['domain'],
  'lossless-json': ['domain'],
  ajv: ['domain'],
  'ajv-formats': ['domain'],
  typebox: ['domain', 'pipeline', 'http'],
  convict: ['runtime'],
  winston: ['runtime'],
  '@opentelemetry': ['runtime'],
  fastify: ['http', 'receiver'],
  '@fastify': ['http'],
  commander: ['cli'],
  'cli-table3': ['cli'],
  'cli-progress': ['cli'],
  'csv-parse': ['cli'],
};

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
const IMPORT = /^(?:import\b.*|export\b.* from |\} from )'([^']+)';$|\bimport\('([^']+)'\)/gm;
const COMMENT = /\/\*[\s\S]*?\*\/|\/\/.*$/gm;

const sources = files.map((file) => {
  const text = readFileSync(join(SRC, file), 'utf8');
  const imports = [...text.matchAll(IMPORT)].map((match) => match[1] ?? match[2] ?? '');
  return {
    file,
    layer: file.split(/[/.]/)[0] ?? '',
    lines: text.split('\n').length - 1,
    imports,
    code: text.replaceAll(COMMENT, ''),
  };
});

test('imports point down', () => {
  const wrong = sources.flatMap(({ file, layer, imports }) =>
    imports
      .filter((path) => path.startsWith('.'))
      .map((path) => relative(SRC, resolve(SRC, dirname(file), path)))
      .filter((path) => !path.startsWith('..'))
      .map((path) => path.split(/[/.]/)[0] ?? '')
      .filter((to) => to !== layer && !MAY_IMPORT[layer]?.includes(to))
      .map((to) => `${file} imports ${to}`),
  );
  expect(wrong).toEqual([]);
});

test('a package has one home', () => {
  const wrong = sources.flatMap(({ file, layer, imports }) =>
    imports
      .filter((path) => !path.startsWith('.') && !path.startsWith('node:'))
      .map((path) => path.split('/')[0] ?? '')
      .filter((name) => !HOMES[name]?.includes(layer))
      .map((name) => `${file} imports ${name}`),
  );
  expect(wrong).toEqual([]);
});

test('the domain is pure: no clock, no randomness, no environment, no files', () => {
  const impure =
    /Date\.now\(|new Date\(\)|Math\.random\(|process\.|performance\.|from 'node:(?!buffer|crypto|net|util)/;
  expect(
    sources.filter(({ layer, code }) => layer === 'domain' && impure.test(code)).map((s) => s.file),
  ).toEqual([]);
});

test('nothing but the runtime reads the environment', () => {
  const readers = sources.filter(({ code }) => /process\.env\b/.test(code)).map(({ layer }) => layer);
  expect(new Set(readers)).toEqual(new Set(['runtime']));
});

test('no file is longer than 300 lines', () => {
  expect(sources.filter(({ lines }) => lines > 300).map(({ file }) => file)).toEqual([]);
});
