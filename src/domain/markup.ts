const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/**
 * Text from outside as text within HTML, also within an attribute's quotes; what would be invisible, or change the
 * direction of reading, is shown by its number.
 */
export function escapeHtml(text: string): string {
  return text
    .replace(/[&<>"']/g, (character) => ENTITIES[character] as string)
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
      character === '\n' || character === '\t'
        ? character
        : `\\u{${(character.codePointAt(0) as number).toString(16)}}`,
    );
}

/** Markup in which every value is escaped. */
export function html(parts: TemplateStringsArray, ...values: readonly string[]): string {
  return String.raw({ raw: parts }, ...values.map(escapeHtml));
}

/** Markup of which the values are markup already. */
export function raw(parts: TemplateStringsArray, ...values: readonly string[]): string {
  return String.raw({ raw: parts }, ...values);
}

/** A list; every line is text. Nothing for no lines, for an empty list is no valid one to read aloud. */
export function htmlList(lines: readonly string[]): string {
  return lines.length === 0 ? '' : raw`<ul>${lines.map((line) => html`<li>${line}</li>`).join('')}</ul>`;
}

/** A table; every cell is text. */
export function htmlTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const headers = head.map((text) => html`<th scope="col">${text}</th>`).join('');
  const lines = rows.map((row) => raw`<tr>${row.map((text) => html`<td>${text}</td>`).join('')}</tr>`);
  return raw`<table>
<thead><tr>${headers}</tr></thead>
<tbody>
${lines.join('\n')}
</tbody>
</table>`;
}

/** A page of its own: nothing is loaded, no script runs, and it prints. */
export function htmlPage(page: {
  readonly title: string;
  readonly style: string;
  readonly body: string;
}): string {
  return raw`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
${html`<title>${page.title}</title>`}
<style>
${page.style.trim()}
</style>
</head>
<body>
<main>
${page.body}
</main>
</body>
</html>
`;
}
