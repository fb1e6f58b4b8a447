import type { Findings } from '../../domain/audit/finding.ts';
import { arePeaksOf, growPeaks, type Peaks, rootOf, rootOfPeaks } from '../../domain/audit/merkle.ts';
import type { PublishedSeal } from '../../domain/audit/published.ts';
import { hashSeal, type SealStatement, type SignatureCheck } from '../../domain/audit/seal.ts';
import { listLeavesOfSeal, listLostSeals } from '../../store/evidence/seal-leaves.ts';
import { listSealsAfter, type StoredSeal, splitHashes, statementOf } from '../../store/evidence/seals.ts';
import type { Pool, Queryable } from '../../store/pool.ts';
import type { Dropped } from './dropped.ts';

export interface SealHead {
  readonly number: number;
  readonly sha256: string;
  readonly sealed_at: string;
}

export interface SealCheckOptions {
  readonly pool: Pool;
  readonly checkSignature: SignatureCheck;
  readonly published?: readonly PublishedSeal[];
  readonly onProgress?: (stage: 'seals', done: number) => void;
}

const PAGE = 20;

/** Checks each seal: its signature, that it follows the one before, its tree, and that each of its leaves is somebody's. */
export async function verifySeals(
  options: SealCheckOptions,
  of: { readonly dropped: Dropped; readonly findings: Findings },
): Promise<{ head: SealHead | undefined; seals: number }> {
  const { pool, checkSignature, onProgress } = options;
  const { dropped, findings } = of;
  const published = new Map((options.published ?? []).map((p) => [p.number, p.sha256]));
  // Undefined: they cannot be told from what is left.
  let peaks: Peaks | undefined = [];
  let before: StoredSeal | undefined;
  let head: SealHead | undefined;
  let seals = 0;
  for (let after = 0; ; after = before?.number ?? 0) {
    const page = await listSealsAfter(pool, { after, limit: PAGE });
    if (page.length === 0) break;
    for (const seal of page) {
      const where = `seal ${seal.number}`;
      const add = (what: string): void => findings.add(where, what);
      const expected = (before?.number ?? 0) + 1;
      // After a gap there is nothing that it could follow.
      const follows = seal.number === expected;
      if (!follows) {
        findings.add(`seal ${expected}`, `it is missing; the next one that is there is ${seal.number}`);
      }
      const statement = readStatement(seal);
      if (statement === undefined) {
        add('its statement cannot be read');
      } else {
        const checked = checkSignature(statement.key_id, seal.text, seal.signature);
        if (checked !== true) findings.add(where, checked.what, checked.unknownKey);
        checkSeal(seal, { statement, add });
        if (follows) checkOrder(seal, { statement, before, peaks, add });
        await checkPlaces(pool, { seal, statement, dropped, add });
        head = { number: seal.number, sha256: seal.sha256.toString('hex'), sealed_at: statement.sealed_at };
      }
      const wanted = published.get(seal.number);
      if (wanted !== undefined && wanted !== seal.sha256.toString('hex')) {
        add(`it is not the one that was published, ${wanted.slice(0, 12)}…: it was replaced`);
      }
      published.delete(seal.number);
      peaks = follows && peaks ? growPeaks(peaks, seal.number - 1, seal.sha256) : readPeaks(seal, add);
      before = seal;
      seals += 1;
    }
    onProgress?.('seals', seals);
  }
  for (const number of published.keys()) findings.add(`seal ${number}`, 'it was published, and is missing');
  for (const number of await listLostSeals(pool, 100)) {
    findings.add(`seal ${number}`, 'leaves name it, and it is missing');
  }
  return { head, seals };
}

function readStatement(seal: StoredSeal): SealStatement | undefined {
  try {
    return statementOf(seal);
  } catch {
    return undefined;
  }
}

/** What a seal says of the tree up to it, where that is all there is to go by. */
function readPeaks(seal: StoredSeal, add: (what: string) => void): Peaks | undefined {
  const peaks = splitHashes(seal.peaks);
  if (arePeaksOf(peaks, seal.number)) return peaks;
  add('its peaks are not those of the seals up to it');
  return undefined;
}

function checkSeal(
  seal: StoredSeal,
  { statement, add }: { statement: SealStatement; add: (what: string) => void },
): void {
  if (!hashSeal(seal.text).equals(seal.sha256)) add('its hash is not that of its statement');
  if (statement.number !== seal.number) add(`its statement is that of seal ${statement.number}`);
  const hashes = splitHashes(seal.leaves);
  if (hashes.length !== statement.leaves || rootOf(hashes).toString('hex') !== statement.root_sha256) {
    add('its leaves are not those that were signed');
  }
}

function checkOrder(
  seal: StoredSeal,
  of: {
    statement: SealStatement;
    before: StoredSeal | undefined;
    peaks: Peaks | undefined;
    add: (what: string) => void;
  },
): void {
  const { statement, before, peaks, add } = of;
  if (statement.previous_sha256 !== (before?.sha256.toString('hex') ?? null)) {
    add(`it does not follow seal ${seal.number - 1} as that is now`);
  }
  if (peaks === undefined) return;
  if (statement.history_root_sha256 !== rootOfPeaks(peaks).toString('hex')) {
    add('its history is not that of the seals before it as they are now');
  }
  if (!Buffer.concat(growPeaks(peaks, seal.number - 1, seal.sha256)).equals(seal.peaks)) {
    add('its peaks are not those of the seals up to it');
  }
}

/** Each leaf of a seal is named by exactly one row, unless retention has dropped its month. */
async function checkPlaces(
  db: Queryable,
  of: { seal: StoredSeal; statement: SealStatement; dropped: Dropped; add: (what: string) => void },
): Promise<void> {
  const { seal, statement, dropped, add } = of;
  const places = await listLeavesOfSeal(db, seal.number);
  const byIndex = new Map<number, string>();
  for (const place of places) {
    const other = byIndex.get(place.index);
    if (other !== undefined) add(`leaf ${place.index} is claimed by ${other} and by ${place.subjectId}`);
    if (place.index < 0 || place.index >= statement.leaves)
      add(`${place.subjectId} claims leaf ${place.index}, which it does not have`);
    byIndex.set(place.index, place.subjectId);
  }
  let from = 0;
  for (const part of statement.parts) {
    const to = from + part.leaves;
    const missing = Array.from({ length: part.leaves }, (_, i) => from + i).filter((i) => !byIndex.has(i));
    from = to;
    if (missing.length === 0 || dropped.coversMonth(part.kind, part.month)) continue;
    add(
      `${missing.length} of ${part.leaves} leaves of ${part.kind}s of ${part.month} belong to nothing any more (leaf ${missing.slice(0, 5).join(', ')}): what they sealed was removed`,
    );
  }
}
