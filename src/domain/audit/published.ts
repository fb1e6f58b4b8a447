import type { Bundle } from './bundle.ts';
import type { Findings } from './finding.ts';
import { hashSeal, sealText } from './seal.ts';

/** A seal as it was published: in a file, by a notification, on paper. */
export interface PublishedSeal {
  readonly number: number;
  readonly sha256: string;
}

/** What of a bundle was compared with published seals, by seal number. */
export interface Comparison {
  readonly same: readonly number[];
  /** Seals that something in the bundle rests on, and that no published seal vouches for. */
  readonly unknown: readonly number[];
}

/**
 * Holds the seals of a bundle against published ones; one that differs is a finding.
 *
 * The last seal of a bundle vouches for the others, whose place in its history the bundle proves.
 */
export function comparePublished(
  bundle: Bundle,
  { published, findings }: { readonly published: readonly PublishedSeal[]; readonly findings: Findings },
): Comparison {
  const wanted = new Map(published.map((p) => [p.number, p.sha256]));
  const same: number[] = [];
  for (const { statement } of bundle.seals) {
    const { number } = statement;
    const hash = wanted.get(number);
    if (hash === undefined) continue;
    if (hash === hashSeal(sealText(statement)).toString('hex')) same.push(number);
    else
      findings.add(
        `seal ${number}`,
        `it is not the one that was published, ${hash.slice(0, 12)}…: it was replaced`,
      );
  }
  const last = bundle.seals.at(-1)?.statement.number;
  if (last !== undefined && same.includes(last)) return { same, unknown: [] };
  const used = [
    ...bundle.deliveries.flatMap((d) => d.seals.map((s) => s.seal)),
    ...bundle.operations.flatMap((o) => (o.seal === null ? [] : [o.seal.seal])),
  ];
  const unknown = [...new Set(used)].filter((n) => !wanted.has(n)).sort((a, b) => a - b);
  return { same, unknown };
}
