/**
 * Returns whether a database can store the text. PostgreSQL refuses U+0000, and an unpaired surrogate has no UTF-8
 * form. JSON can express both (`\u0000`, `\ud800`).
 */
export function isStorableText(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0");
}

const rule =
  "not contain U+0000 or an unpaired surrogate, which a database cannot store. Check how the text was " +
  "encoded or truncated.";
export const unstorableTextMessage: string = `Must ${rule}`;
export const unstorableNameMessage: string = `The field name must ${rule}`;
