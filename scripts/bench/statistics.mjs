// Medians, ranges and percentiles.

/** The value at a part (0 … 1) of the sorted values; undefined for none. */
export function percentile(values, part) {
  if (values.length === 0) return undefined;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(part * sorted.length) - 1)] ?? sorted[0];
}

export function median(values) {
  const sorted = values.filter((v) => v !== undefined).sort((a, b) => a - b);
  if (sorted.length === 0) return undefined;
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** `{ median, min, max }` of values; undefined for none. */
export function summarise(values) {
  const known = values.filter((v) => v !== undefined);
  if (known.length === 0) return undefined;
  return { median: median(known), min: Math.min(...known), max: Math.max(...known) };
}

/** Ratios of runs of the same round: what the machine did besides hits both. */
export function ratios(ofRuns, toRuns) {
  return summarise(
    ofRuns.map((value, round) => (toRuns[round] === undefined ? undefined : value / toRuns[round])),
  );
}
