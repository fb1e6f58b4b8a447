/**
 * The name that was probably meant, or undefined when none comes near.
 *
 * Case is ignored, and a name whose last part (after a dot) is the same counts as near.
 */
export function findNearest(name: string, names: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(name.length / 4)) + 1;
  for (const candidate of names) {
    const distance = Math.min(
      distanceBetween(name.toLowerCase(), candidate.toLowerCase()),
      lastPart(name) === lastPart(candidate) ? 1 : Number.POSITIVE_INFINITY,
    );
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** ` Did you mean "x"?`, or nothing. */
export function didYouMean(word: string, candidates: Iterable<string>): string {
  const close = findNearest(word, candidates);
  return close === undefined ? '' : ` Did you mean "${close}"?`;
}

function lastPart(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1).toLowerCase();
}

/** How many characters have to be put in, taken out, changed or swapped with the next one. */
function distanceBetween(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const changed = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = isSwap ? (before[j - 2] ?? 0) + 1 : changed;
      next.push(Math.min(changed, swapped, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    before = row;
    row = next;
  }
  return row[b.length] ?? 0;
}
