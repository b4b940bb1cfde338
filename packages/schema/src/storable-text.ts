/**
 * Whether a database can hold the text. PostgreSQL refuses U+0000, and half of a surrogate pair has no UTF-8 form; JSON
 * can write both (`\u0000`, `\ud800`).
 */
export function isStorableText(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0");
}

export const unstorableTextMessage: string =
  "Must not contain U+0000 or half of a surrogate pair, which a database cannot hold. Check how the text was encoded, or where it was cut.";
