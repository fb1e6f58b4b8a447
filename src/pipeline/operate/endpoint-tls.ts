import { describeTls, parseCertificates, parseClientCertificate } from '../../domain/endpoint-tls.ts';
import { refuseField } from '../../domain/refusal.ts';
import type { TlsBody } from '../../domain/requests/schemas.ts';
import { readContext } from '../../egress/connect.ts';
import type { CallTls } from '../../egress/send.ts';
import { findTls, type StoredTls, updateTls } from '../../store/endpoint-tls.ts';
import type { Endpoint } from '../../store/endpoints.ts';
import type { Queryable } from '../../store/pool.ts';
import type { SecretBox } from '../secrets.ts';

/**
 * Merges what a request says of an endpoint's own certificates into what it has; the caller holds its lock.
 *
 * @param body  undefined: all stays; null: all is taken away
 * @throws Refusal that names the member that cannot be used, and quotes none
 */
export async function changeTls(
  db: Queryable,
  endpoint: Endpoint,
  { body, box }: { readonly body: TlsBody | null | undefined; readonly box: SecretBox },
): Promise<Endpoint> {
  let changed = endpoint;
  if (body !== undefined) {
    const { endpointId } = endpoint;
    const to = body === null ? NOTHING : merged(await findTls(db, endpointId), body, endpointId, box);
    const facts = describeTls(to.ca, to.certificate);
    changed = await updateTls(db, endpointId, { ...to, facts });
  }
  if (changed.tls !== undefined && new URL(changed.url).protocol !== 'https:') {
    throw refuseField('/tls', 'tls needs a url that begins with https://: change url, or set tls to null');
  }
  return changed;
}

const NOTHING: StoredTls = { ca: undefined, certificate: undefined, key: undefined };

function merged(before: StoredTls, body: TlsBody, endpointId: string, box: SecretBox): StoredTls {
  return { ...before, ...readAuthority(body), ...readClient(body, (key) => box.seal(endpointId, key)) };
}

function readAuthority({ ca }: TlsBody): Partial<StoredTls> {
  if (ca === undefined || ca === null) return ca === null ? { ca: undefined } : {};
  const read = parseCertificates(ca, 'ca');
  requireUsable({ ca: read }, '/tls/ca');
  return { ca: read };
}

function readClient({ certificate, key }: TlsBody, seal: (key: Buffer) => Buffer): Partial<StoredTls> {
  if (certificate === undefined && key === undefined) return {};
  if (certificate === null && key === null) return { certificate: undefined, key: undefined };
  if (typeof certificate !== 'string' || typeof key !== 'string') {
    const missing = typeof certificate === 'string' ? 'key' : 'certificate';
    throw refuseField(`/tls/${missing}`, `${missing} is missing: give certificate and key together`);
  }
  const read = parseClientCertificate(certificate, key);
  requireUsable({ cert: read.certificate, key: read.key }, '/tls/certificate');
  return { certificate: read.certificate, key: seal(Buffer.from(read.key)) };
}

/** What reads well may still be refused when it is used: a key that is too short, a digest that is not trusted. */
function requireUsable(tls: CallTls, path: string): void {
  const context = readContext(tls);
  if (context instanceof Error) throw refuseField(path, `${context.message}: have it issued anew`);
}
