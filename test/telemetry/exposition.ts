/** One sample of one series; the metric's name is the label `__name__`. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Reads Prometheus's text format. Throws at a line that is none. */
export function parseExposition(text: string, added: Readonly<Record<string, string>> = {}): Sample[] {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const match = /^([a-z_:][\w:]*)(?:\{(.*)\})? (\S+)$/i.exec(line);
      if (match === null) throw new Error(`not a sample: ${line}`);
      const [, name = '', labels = '', value] = match;
      const pairs = [...labels.matchAll(/([a-z_]\w*)="((?:[^"\\]|\\.)*)"/gi)].map(([, key, text]) => [
        key,
        text,
      ]);
      return { labels: { ...Object.fromEntries(pairs), ...added, __name__: name }, value: toNumber(value) };
    });
}

function toNumber(text: string | undefined): number {
  return text === '+Inf' ? Number.POSITIVE_INFINITY : Number(text);
}

/** The value of the one series with this name and these labels; undefined: there is none. */
export function valueOf(
  samples: readonly Sample[],
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const wanted = Object.entries({ ...labels, __name__: name });
  return samples.find((s) => wanted.every(([key, value]) => s.labels[key] === value))?.value;
}
