// The key that seals evidence in development: made once per checkout, kept out of git like everything in .local.

import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { local } from './place.mjs';

const publicKeyFile = join(local, 'sealing.pub.pem');

/** The file of the private key; its public half lies beside it. */
export function developmentSealingKeyFile() {
  const file = join(local, 'sealing.key.pem');
  mkdirSync(local, { recursive: true });
  if (!existsSync(file)) {
    const { privateKey } = generateKeyPairSync('ed25519');
    writeFileSync(file, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  }
  const publicKey = createPublicKey(createPrivateKey(readFileSync(file, 'utf8')));
  writeFileSync(publicKeyFile, publicKey.export({ type: 'spki', format: 'pem' }));
  return file;
}
