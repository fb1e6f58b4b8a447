import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { refuseField } from './refusal.ts';

/** What is shown of a certificate. */
export interface CertificateFacts {
  readonly subject: string;
  /** Of its DER form, lower-case hex. */
  readonly sha256: string;
  readonly expires_at: string;
}

/** What is shown of an endpoint's own certificates, as JSON. */
export interface TlsFacts {
  readonly ca: readonly CertificateFacts[];
  /** The client certificate, without the chain it may come with. */
  readonly certificate: CertificateFacts | null;
}

const CERTIFICATE = /-----BEGIN (X509 |TRUSTED )?CERTIFICATE-----[^-]*-----END \1CERTIFICATE-----/g;

/**
 * Reads certificates in PEM, in their order; whatever else is in the text is left out of what is kept.
 *
 * @throws Refusal at `/tls/<member>`
 */
export function parseCertificates(pem: string, member: 'ca' | 'certificate'): string {
  const path = `/tls/${member}`;
  // What is kept of certificates is not encrypted.
  if (pem.includes('PRIVATE KEY-----')) {
    throw refuseField(path, `${member} holds a private key: give that in key, and here certificates only`);
  }
  const certificates = (pem.match(CERTIFICATE) ?? []).map((block, i) => {
    try {
      return new X509Certificate(block).toString();
    } catch {
      throw refuseField(path, `${member} cannot be read: certificate ${i + 1} in it is damaged`);
    }
  });
  if (certificates.length === 0) {
    throw refuseField(
      path,
      `${member} holds no certificate: give it as PEM, from -----BEGIN CERTIFICATE----- on`,
    );
  }
  return certificates.join('');
}

/**
 * Reads a client certificate, its chain behind it, and the key that belongs to it.
 *
 * @throws Refusal at `/tls/certificate` or `/tls/key`, which never quotes them
 */
export function parseClientCertificate(
  certificate: string,
  key: string,
): { readonly certificate: string; readonly key: string } {
  const chain = parseCertificates(certificate, 'certificate');
  const privateKey = parseKey(key);
  if (!new X509Certificate(chain).checkPrivateKey(privateKey)) {
    throw refuseField(
      '/tls/key',
      'key does not belong to certificate: give the key that it was issued for, and the certificate itself before its chain',
    );
  }
  return { certificate: chain, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
}

function parseKey(pem: string): KeyObject {
  if (pem.includes('ENCRYPTED')) {
    throw refuseField(
      '/tls/key',
      'key is encrypted: give it without a passphrase (openssl pkey -in key.pem -out plain.pem); it is stored encrypted',
    );
  }
  try {
    return createPrivateKey(pem);
  } catch {
    throw refuseField(
      '/tls/key',
      'key holds no private key that can be read: give it as PEM, from -----BEGIN PRIVATE KEY----- on',
    );
  }
}

/** What is shown of certificates that were read before; undefined: there are none. */
export function describeTls(ca: string | undefined, certificate: string | undefined): TlsFacts | undefined {
  if (ca === undefined && certificate === undefined) return undefined;
  return {
    ca: (ca?.match(CERTIFICATE) ?? []).map(describeCertificate),
    certificate: certificate === undefined ? null : describeCertificate(certificate),
  };
}

function describeCertificate(pem: string): CertificateFacts {
  const { subject, fingerprint256, validTo } = new X509Certificate(pem);
  return {
    subject: (subject ?? '').split('\n').join(', '),
    sha256: fingerprint256.replaceAll(':', '').toLowerCase(),
    expires_at: new Date(validTo).toISOString(),
  };
}
