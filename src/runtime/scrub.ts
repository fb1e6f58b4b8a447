// Control characters (C0, DEL, C1), line separators and the characters that turn the direction of text: what can forge
// a line of a log or change what a terminal shows.
const UNPRINTABLE = /[\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/gu;

const URL_IN_TEXT = /\b([a-z][a-z0-9+.-]{0,20}:\/\/)([^\s<>"`]+)/gi;

/** Takes out of a text what must not be seen: credentials and queries of URLs, secrets of endpoints. */
export function hideSecrets(text: string): string {
  const withoutSecrets = text.includes('whsec_')
    ? text.replace(/whsec_[A-Za-z0-9+/=_-]+/g, 'whsec_***')
    : text;
  return withoutSecrets.includes('://') ? withoutSecrets.replace(URL_IN_TEXT, hideInUrl) : withoutSecrets;
}

/** Writes what cannot be printed, or must not be, as `\uXXXX`. */
export function escapeUnprintable(text: string): string {
  return text.replace(UNPRINTABLE, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Text from outside, safe for one line on a terminal: no URL credentials or queries, control characters escaped. */
export function scrub(text: string): string {
  return escapeUnprintable(hideSecrets(text));
}

function hideInUrl(_url: string, scheme: string, rest: string): string {
  // Up to the *last* @: a password that is not encoded may hold anything, / and ? included.
  const at = rest.lastIndexOf('@');
  const shown = at < 0 ? rest : `***@${rest.slice(at + 1)}`;
  const query = shown.search(/[?#]/);
  return `${scheme}${query < 0 ? shown : `${shown.slice(0, query)}?***`}`;
}
