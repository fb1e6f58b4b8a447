import { isUtf8 } from 'node:buffer';
import { canonicalJson, sha256Hex } from '../json.ts';
import { validatorOf } from '../requests/validate.ts';
import { Bundle, type BundledDelivery, bundleText, signedText } from './bundle.ts';
import { readJson } from './chain.ts';
import { checkDelivery } from './check-delivery.ts';
import { explain, type Proof } from './explain.ts';
import { type DeliveryFacts, deliveryLeafText, hashContent, operationLeafText } from './facts.ts';
import { collectFindings, type Finding, type Findings } from './finding.ts';
import { hashLeaf, isConsistent, rootOfInclusion } from './merkle.ts';
import { type Comparison, comparePublished, type PublishedSeal } from './published.ts';
import { hashSeal, type SealStatement, type SignatureCheck, sealText } from './seal.ts';
import { passedOver, sayPassedOver } from './sealing-time.ts';

/** What a bundle is worth. */
export interface BundleReport {
  /** Whether nothing speaks against it. */
  readonly ok: boolean;
  readonly findings: readonly Finding[];
  /** In plain words; empty when something speaks against it. */
  readonly proof: Proof;
  /** The last seal it knows of: to compare with one that was published elsewhere. */
  readonly head: { readonly number: number; readonly sha256: string; readonly sealed_at: string } | undefined;
  /** Undefined: no published seals were given. */
  readonly published: Comparison | undefined;
  readonly bundle: Bundle | undefined;
}

const NO_PROOF: Proof = { deliveries: [], vouched_for: false, proves: [], cannot: [] };

/**
 * Checks a bundle by nothing but itself and the public keys; and by seals that were published, where there are any.
 */
export function verifyBundle(
  file: Buffer,
  checkSignature: SignatureCheck,
  publishedSeals?: readonly PublishedSeal[],
): BundleReport {
  const findings = collectFindings();
  const bundle = readBundle(file, findings);
  if (bundle === undefined) {
    const published = undefined;
    return { ok: false, findings: findings.list, proof: NO_PROOF, head: undefined, published, bundle };
  }
  checkWhole(bundle, checkSignature, findings);
  const seals = checkSeals(bundle, checkSignature, findings);
  const sealedTo = new Map<string, number>();
  for (const delivery of bundle.deliveries) {
    sealedTo.set(delivery.delivery.delivery_id, checkBundled(delivery, seals, findings));
  }
  checkOperations(bundle, seals, findings);
  checkReceipts(bundle, findings);
  const published = publishedSeals && comparePublished(bundle, { published: publishedSeals, findings });
  const last = bundle.seals.at(-1)?.statement;
  const ok = findings.list.length === 0;
  return {
    ok,
    findings: findings.list,
    proof: ok ? explain(bundle, sealedTo) : NO_PROOF,
    head: last && {
      number: last.number,
      sha256: hashSeal(sealText(last)).toString('hex'),
      sealed_at: last.sealed_at,
    },
    published,
    bundle,
  };
}

function readBundle(file: Buffer, findings: Findings): Bundle | undefined {
  const text = file.toString();
  const value = readJson(text);
  // What is no UTF-8 is read as other characters, and would be taken for them.
  if (value === undefined || !isUtf8(file)) {
    findings.add('file', 'it is not valid JSON');
    return undefined;
  }
  const faults = validatorOf(Bundle)(value);
  for (const fault of faults.slice(0, 20)) findings.add(`file ${fault.path}`, fault.message);
  if (faults.length > 0) return undefined;
  const bundle = value as Bundle;
  findings.expect(
    bundleText(bundle) === text,
    'file',
    'it is not written the way it is exported: it was changed',
  );
  return bundle;
}

function checkWhole(bundle: Bundle, checkSignature: SignatureCheck, findings: Findings): void {
  const { sha256, signature, ...content } = bundle;
  findings.expect(
    sha256Hex(canonicalJson(content)) === sha256,
    'file',
    'its content does not have the hash it states',
  );
  if (signature === null) return;
  const checked = checkSignature(signature.key_id, signedText(sha256), Buffer.from(signature.ed25519, 'hex'));
  if (checked !== true) findings.add('signature of the file', checked.what, checked.unknownKey);
}

/** The seals by number; each is signed, and part of the history of the last. */
function checkSeals(
  bundle: Bundle,
  checkSignature: SignatureCheck,
  findings: Findings,
): ReadonlyMap<number, SealStatement> {
  const last = bundle.seals.at(-1);
  const byNumber = new Map<number, SealStatement>();
  let before: SealStatement | undefined;
  for (const seal of bundle.seals) {
    const { statement } = seal;
    const where = `seal ${statement.number}`;
    const text = sealText(statement);
    const checked = checkSignature(statement.key_id, text, Buffer.from(seal.signature, 'hex'));
    if (checked !== true) findings.add(where, checked.what, checked.unknownKey);
    findings.expect(before === undefined || statement.number > before.number, where, 'it is out of order');
    if (before !== undefined && statement.number === before.number + 1) {
      findings.expect(
        statement.previous_sha256 === hashSeal(sealText(before)).toString('hex'),
        where,
        'it does not follow the seal before it',
      );
    }
    const counted = statement.parts.reduce((sum, part) => sum + part.leaves, 0);
    findings.expect(counted === statement.leaves, where, 'its parts do not add up');
    if (seal === last || last === undefined) {
      findings.expect(seal.history === null, where, 'it is the last, and has a history within itself');
    } else {
      findings.expect(
        seal.history !== null && isInHistory(statement, seal.history, last.statement),
        where,
        `it is not part of the history of seal ${last.statement.number}`,
      );
    }
    byNumber.set(statement.number, statement);
    before = statement;
  }
  return byNumber;
}

function isInHistory(
  seal: SealStatement,
  history: { readonly inclusion: readonly string[]; readonly consistency: readonly string[] },
  last: SealStatement,
): boolean {
  const later = { size: last.number - 1, root: bytes(last.history_root_sha256) };
  const earlier = { size: seal.number - 1, root: bytes(seal.history_root_sha256) };
  const root = rootOfInclusion(
    hashSeal(sealText(seal)),
    { index: seal.number - 1, size: later.size },
    history.inclusion.map(bytes),
  );
  return root?.equals(later.root) === true && isConsistent(earlier, later, history.consistency.map(bytes));
}

function checkBundled(
  bundled: BundledDelivery,
  seals: ReadonlyMap<number, SealStatement>,
  findings: Findings,
): number {
  const { delivery } = bundled;
  const facts = factsOf(bundled, findings);
  for (const finding of checkDelivery(delivery.delivery_id, facts)) findings.add(finding.where, finding.what);
  let sealedTo = 0;
  for (const sealed of bundled.seals) {
    const where = `seal ${sealed.seal}, leaf ${sealed.index}`;
    const record = bundled.records.find((r) => r.cycle === sealed.cycle) ?? null;
    const entry = bundled.trail.find((e) => e.entry === sealed.trail_length);
    if (entry === undefined || (sealed.cycle !== null && record?.trail_length !== entry.entry)) {
      findings.add(where, `what was sealed of ${delivery.delivery_id} is not in the bundle`);
      continue;
    }
    const leaf = deliveryLeafText({
      kind: delivery.kind,
      delivery_id: delivery.delivery_id,
      trail_length: sealed.trail_length,
      trail_sha256: entry.sha256,
      content_sha256: sealed.content_sha256,
      record,
    });
    findings.expect(
      isSealed(leaf, sealed, seals),
      where,
      `${delivery.delivery_id} up to trail entry ${sealed.trail_length} is not what was sealed`,
    );
    checkTime(entry.at, { place: sealed, seals, where, findings });
    // The latest seal that covers all entries also covers all else that is known.
    if (sealed.trail_length === delivery.trail_length) {
      findings.expect(
        hashContent(facts) === sealed.content_sha256,
        where,
        `the attempts, the ${delivery.kind} or the timing of ${delivery.delivery_id} are not what was sealed`,
      );
    }
    sealedTo = Math.max(sealedTo, sealed.trail_length);
  }
  return sealedTo;
}

/** The facts within a bundle, as the checks want them: the bytes by their hash. */
export function factsOf(bundled: BundledDelivery, findings: Findings): DeliveryFacts {
  const { bytes: base64, ...body } = bundled.body;
  const decoded = base64 === null ? undefined : Buffer.from(base64, 'base64');
  findings.expect(
    decoded?.toString('base64') === (base64 ?? undefined),
    `body of ${bundled.delivery.delivery_id}`,
    'it is not plain base64',
  );
  return {
    delivery: bundled.delivery,
    source: bundled.source,
    body: { ...body, bytes_sha256: decoded === undefined ? null : sha256Hex(decoded) },
    trail: bundled.trail,
    attempts: bundled.attempts,
    records: bundled.records,
  };
}

function isSealed(
  leafText: string,
  place: { readonly seal: number; readonly index: number; readonly path: readonly string[] },
  seals: ReadonlyMap<number, SealStatement>,
): boolean {
  const seal = seals.get(place.seal);
  if (seal === undefined) return false;
  const at = { index: place.index, size: seal.leaves };
  return (
    rootOfInclusion(hashLeaf(leafText), at, place.path.map(bytes))?.equals(bytes(seal.root_sha256)) === true
  );
}

function checkOperations(
  bundle: Bundle,
  seals: ReadonlyMap<number, SealStatement>,
  findings: Findings,
): void {
  for (const { operation, seal } of bundle.operations) {
    if (seal === null) continue;
    findings.expect(
      isSealed(operationLeafText(operation), seal, seals),
      `operation ${operation.operation_id}`,
      'it is not what was sealed',
    );
    checkTime(operation.at, { place: seal, seals, where: `operation ${operation.operation_id}`, findings });
  }
}

/** What is in a seal cannot be older than an earlier seal that had room for it. */
function checkTime(
  saidAt: string,
  of: {
    readonly place: { readonly seal: number };
    readonly seals: ReadonlyMap<number, SealStatement>;
    readonly where: string;
    readonly findings: Findings;
  },
): void {
  const { place, seals, where, findings } = of;
  const earlier = [...seals.values()].filter((s) => s.number < place.seal);
  const skipped = passedOver(saidAt, earlier);
  if (skipped !== undefined) findings.add(where, sayPassedOver(saidAt, skipped));
}

/** A receipt speaks of a delivery here, of its bytes, and of one effect. */
function checkReceipts(bundle: Bundle, findings: Findings): void {
  const byKey = new Map(bundle.deliveries.map((d) => [d.delivery.idempotency_key, d]));
  for (const receipt of bundle.receipts) {
    const where = `receipt for ${receipt.idempotency_key}`;
    const about = byKey.get(receipt.idempotency_key);
    findings.expect(about !== undefined, where, 'no delivery here has this key');
    if (about === undefined) continue;
    findings.expect(
      receipt.body_sha256 === null || receipt.body_sha256 === about.body.sha256,
      where,
      'the receiver has processed other bytes than were sent',
    );
    findings.expect(
      receipt.effects <= 1,
      where,
      `the receiver says that it took effect ${receipt.effects} times`,
    );
  }
}

function bytes(hex: string): Buffer {
  return Buffer.from(hex, 'hex');
}
