import { generateKeyPairSync, type KeyObject, randomBytes, sign, X509Certificate } from 'node:crypto';

/** A certificate and its key, as PEM. */
export interface Issued {
  readonly cert: string;
  readonly key: string;
  readonly name: string;
  readonly privateKey: KeyObject;
}

interface Wish {
  readonly name: string;
  /** Undefined: signed by itself. */
  readonly issuer?: Issued;
  readonly isAuthority?: boolean;
  readonly addresses?: readonly string[];
  readonly names?: readonly string[];
  readonly notBefore?: Date;
  readonly notAfter?: Date;
}

const DAY_MS = 86_400_000;
const ECDSA_WITH_SHA256 = tlv(0x30, oid([1, 2, 840, 10045, 4, 3, 2]));

/** Issues a certificate (X.509, RFC 5280), so that no test depends on a file that grows old or a program that is missing. */
export function issueCertificate(wish: Wish): Issued {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const now = Date.now();
  const body = tlv(
    0x30,
    tlv(0xa0, tlv(0x02, Buffer.from([2]))),
    tlv(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ECDSA_WITH_SHA256,
    distinguishedName(wish.issuer?.name ?? wish.name),
    tlv(0x30, time(wish.notBefore ?? new Date(now - DAY_MS)), time(wish.notAfter ?? new Date(now + DAY_MS))),
    distinguishedName(wish.name),
    publicKey.export({ type: 'spki', format: 'der' }),
    tlv(0xa3, tlv(0x30, ...extensions(wish))),
  );
  const signature = sign('sha256', body, wish.issuer?.privateKey ?? privateKey);
  const der = tlv(0x30, body, ECDSA_WITH_SHA256, tlv(0x03, Buffer.from([0]), signature));
  return {
    cert: new X509Certificate(der).toString(),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    name: wish.name,
    privateKey,
  };
}

function extensions({ isAuthority = false, addresses = [], names = [] }: Wish): Buffer[] {
  const constraints = tlv(0x30, ...(isAuthority ? [tlv(0x01, Buffer.from([0xff]))] : []));
  const alternatives = [
    ...names.map((name) => tlv(0x82, Buffer.from(name))),
    ...addresses.map((address) => tlv(0x87, Buffer.from(address.split('.').map(Number)))),
  ];
  return [
    tlv(0x30, oid([2, 5, 29, 19]), tlv(0x01, Buffer.from([0xff])), tlv(0x04, constraints)),
    ...(alternatives.length === 0
      ? []
      : [tlv(0x30, oid([2, 5, 29, 17]), tlv(0x04, tlv(0x30, ...alternatives)))]),
  ];
}

function distinguishedName(name: string): Buffer {
  return tlv(0x30, tlv(0x31, tlv(0x30, oid([2, 5, 4, 3]), tlv(0x0c, Buffer.from(name)))));
}

function time(at: Date): Buffer {
  return tlv(0x17, Buffer.from(`${at.toISOString().replace(/[-:T]/g, '').slice(2, 14)}Z`));
}

function oid([first = 0, second = 0, ...rest]: readonly number[]): Buffer {
  const bytes = [first * 40 + second];
  for (const arc of rest) {
    const groups = [arc & 0x7f];
    for (let left = arc >> 7; left > 0; left >>= 7) groups.unshift((left & 0x7f) | 0x80);
    bytes.push(...groups);
  }
  return tlv(0x06, Buffer.from(bytes));
}

function tlv(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}
