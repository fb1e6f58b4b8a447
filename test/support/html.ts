const VOID = new Set(['br', 'hr', 'img', 'link', 'meta']);

/** What is wrong with a page of our own: markup that does not nest, what assistive technology misses, colours too faint. */
export function faultsOfPage(page: string): string[] {
  const faults: string[] = [];
  const open: string[] = [];
  const markup = page.replace(/<!doctype html>/i, '').replace(/<style>[\s\S]*?<\/style>/, '');
  for (const [tag, closing, name = ''] of markup.matchAll(/<(\/?)([a-z0-9]+)((?:\s[^<>]*)?)>/gi)) {
    if (closing === '/') {
      if (open.pop() !== name) faults.push(`${tag} closes what is not open`);
    } else if (!VOID.has(name) && !tag.endsWith('/>')) open.push(name);
    if (name === 'th' && closing === '' && !/scope="(col|row)"/.test(tag)) faults.push('a th without scope');
    if (/\son[a-z]+=|<script|\s(src|href)=/i.test(tag)) faults.push(`${tag} loads or runs something`);
  }
  if (open.length > 0) faults.push(`never closed: ${open.join(', ')}`);
  const text = markup.replace(/<\/?[a-z0-9]+(?:\s[^<>]*)?>/gi, '');
  if (/[<>]|&(?!(amp|lt|gt|quot|#39);)/.test(text)) faults.push('text that is not escaped');
  const wanted = {
    doctype: /^<!doctype html>\n/,
    language: /<html lang="en">/,
    title: /<title>[^<]+<\/title>/,
    viewport: /<meta name="viewport" content="width=device-width, initial-scale=1">/,
    landmark: /<main>/,
    'heading of the first level': /<h1>[^<]+<\/h1>/,
    'rules for printing': /@media print/,
  };
  for (const [what, pattern] of Object.entries(wanted)) {
    if (!pattern.test(page)) faults.push(`no ${what}`);
  }
  return [...faults, ...faintColours(/<style>([\s\S]*?)<\/style>/.exec(page)?.[1] ?? '')];
}

/** Rules whose text has a contrast below 4.5 : 1 (WCAG 2.2, 1.4.3) on their own background, white where they name none. */
function faintColours(style: string): string[] {
  return [...style.matchAll(/([^{}]+)\{([^{}]*)\}/g)].flatMap(([, selector = '', rule = '']) => {
    const foreground = /(?:^|[;\s])(?:color|fill):\s*(#[0-9a-f]{3,6})/i.exec(rule)?.[1];
    if (foreground === undefined || /\.(weekend|holiday|ok|bad)\b/.test(selector)) return [];
    const background = /background:\s*(#[0-9a-f]{3,6})/i.exec(rule)?.[1] ?? '#fff';
    const contrast = contrastOf(foreground, background);
    return contrast < 4.5 ? [`${selector.trim()} has a contrast of ${contrast.toFixed(1)}`] : [];
  });
}

function contrastOf(a: string, b: string): number {
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

function luminance(colour: string): number {
  const hex = colour.length === 4 ? colour.replace(/[0-9a-f]/gi, '$&$&') : colour;
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const channel = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
