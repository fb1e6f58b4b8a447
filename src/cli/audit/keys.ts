import { generateKeyPairSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import {
  createSignatureCheck,
  createSigner,
  publicKeyOf,
  type SignatureCheck,
  type Signer,
} from '../../domain/audit/seal.ts';
import type { Config } from '../../runtime/config.ts';
import { type CommonOptions, inContext, withCommonOptions, withExamples } from '../context.ts';

/** `duepost audit keygen` and `audit public-key`. */
export function addAuditKeys(group: Command): void {
  const keygen = withCommonOptions(group.command('keygen'))
    .description(
      'make a key pair for seals: the private key for this installation, the public one for everybody',
    )
    .option(
      '--out <name>',
      'writes <name>.pem (private) and <name>.pub.pem; never over what is there',
      'sealing',
    )
    .action((options: CommonOptions & { readonly out: string }) =>
      inContext(
        options,
        ({ print }) => {
          const { privateKey } = generateKeyPairSync('ed25519');
          const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
          const files = { private_key: `${options.out}.pem`, public_key: `${options.out}.pub.pem` };
          writeNew(files.private_key, pem, 0o600);
          writeNew(files.public_key, publicKeyOf(pem), 0o644);
          print({ key_id: createSigner(pem).keyId, ...files }, () =>
            [
              `${files.private_key}  keep it secret: DUEPOST_SEALING_KEY_FILE=${files.private_key}`,
              `${files.public_key}  give it to whoever checks evidence: duepost audit verify FILE --public-key ${files.public_key}`,
            ].join('\n'),
          );
        },
        [],
      ),
    );
  withExamples(keygen, 'duepost audit keygen --out sealing-2027');
  withCommonOptions(group.command('public-key'))
    .description('the public half of the key that seals here')
    .action((options: CommonOptions) =>
      inContext(
        options,
        ({ config, print }) => {
          const pem = publicKeyOf(requireSealingKey(config));
          print({ key_id: createSigner(requireSealingKey(config)).keyId, public_key: pem }, () =>
            pem.trimEnd(),
          );
        },
        [],
      ),
    );
}

function writeNew(file: string, text: string, mode: number): void {
  try {
    writeFileSync(file, text, { mode, flag: 'wx' });
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    throw new Error(`${file} is there already, and may be in use: name others with --out`, { cause: error });
  }
}

/** The private key of seals; throws where none is configured. */
export function requireSealingKey(config: Config): string {
  const { privateKey } = config.sealing;
  if (privateKey !== undefined) return privateKey;
  throw new Error(
    'no sealing key is configured: make one with duepost audit keygen, and set DUEPOST_SEALING_KEY_FILE',
  );
}

/** The signer of this installation; undefined: it has no key. */
export function signerOf({ sealing }: Config): Signer | undefined {
  return sealing.privateKey === undefined ? undefined : createSigner(sealing.privateKey);
}

/** Checks by the public keys in files; and by the key of this installation, where it has one and `own` is given. */
export function readPublicKeys(files: readonly string[], own?: Config): SignatureCheck {
  const ours = own?.sealing.privateKey;
  return createSignatureCheck([
    ...files.map(readPublicKey),
    ...(ours === undefined ? [] : [publicKeyOf(ours)]),
  ]);
}

function readPublicKey(file: string): string {
  const text = readFileSync(file, 'utf8');
  try {
    createSignatureCheck([text]);
  } catch (error) {
    throw new Error(`${file} is no Ed25519 public key in PEM, such as duepost audit keygen writes`, {
      cause: error,
    });
  }
  return text;
}
