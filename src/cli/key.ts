import { type Command, InvalidArgumentError } from 'commander';
import { createKey, revokeKey } from '../pipeline/operate/keys.ts';
import { type ApiKey, listKeys, SCOPES, type Scope } from '../store/keys.ts';
import { readList, readTime } from './arguments.ts';
import { type CommonOptions, inContext, withCommonOptions, withExamples } from './context.ts';
import { openDatabase } from './parts.ts';
import { formatTable } from './print.ts';
import { by, withReason } from './reason.ts';

interface CreateOptions extends CommonOptions {
  readonly name: string;
  readonly scopes: Scope[];
  readonly expires?: Date;
}

/** `duepost key create|list|revoke`: keys of the HTTP API. */
export function addKey(program: Command): void {
  const group = program.command('key').description('keys of the HTTP API');
  const create = withCommonOptions(group.command('create'))
    .description('make a key; it is shown once, and stored as a hash')
    .requiredOption('--name <name>', 'what it is for')
    .requiredOption('--scopes <list>', `${SCOPES.join(', ')}; separated by commas`, readScopes)
    .option('--expires <time>', 'when it ends, such as 2027-12-31; never if left out', readTime)
    .action((options: CreateOptions) =>
      inContext(options, async (context) => {
        const { name, scopes, expires } = options;
        const { apiKey, key } = await createKey(
          await openDatabase(context),
          { name, scopes, ...(expires === undefined ? {} : { expiresAt: expires }) },
          { actor: context.actor },
        );
        context.print({ ...keyView(apiKey), key }, () => `${apiKey.keyId}  ${key}  (shown this once)`);
      }),
    );
  withExamples(
    create,
    'duepost key create --name ci --scopes admin',
    'duepost key create --name billing --scopes publish,read --expires 2027-12-31',
  );
  const list = withCommonOptions(group.command('list'))
    .description('all keys, without the keys themselves')
    .action((options: CommonOptions) =>
      inContext(options, async (context) => {
        const keys = await listKeys(await openDatabase(context));
        const answer = { data: keys.map(keyView), next_cursor: null, has_more: false };
        context.print(answer, () => formatTable(HEAD, keys.map(toRow)));
      }),
    );
  withExamples(list, 'duepost key list');
  const revoke = withReason(group.command('revoke <key>'))
    .description('end a key, by id or name; it acts within two seconds')
    .action((reference: string, options: CommonOptions & { readonly reason?: string }) =>
      inContext(options, async (context) => {
        const key = await revokeKey(await openDatabase(context), reference, by(context, options));
        context.print(keyView(key), () => `revoked ${key.keyId} (${key.name})`);
      }),
    );
  withExamples(revoke, 'duepost key revoke billing --reason "left the company"');
}

function readScopes(text: string): Scope[] {
  const names = readList(text);
  for (const name of names) {
    if (!(SCOPES as readonly string[]).includes(name)) {
      throw new InvalidArgumentError(`${name} is no scope; known are ${SCOPES.join(', ')}.`);
    }
  }
  if (names.length === 0) throw new InvalidArgumentError(`Give one of ${SCOPES.join(', ')}.`);
  return names as Scope[];
}

const HEAD = ['key_id', 'name', 'scopes', 'created', 'expires', 'revoked', 'last used'];

function toRow(key: ApiKey): unknown[] {
  return [key.keyId, key.name, key.scopes, key.createdAt, key.expiresAt, key.revokedAt, key.lastUsedAt];
}

function keyView(key: ApiKey): Record<string, unknown> {
  return {
    key_id: key.keyId,
    name: key.name,
    scopes: key.scopes,
    created_at: key.createdAt,
    expires_at: key.expiresAt ?? null,
    revoked_at: key.revokedAt ?? null,
    last_used_at: key.lastUsedAt ?? null,
  };
}
