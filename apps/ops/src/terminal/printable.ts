/** What partners sent may hold sequences that steer a terminal, or turn its text around: they are shown as escapes. */
export function printable(text: string): string {
  return text.replace(/\p{Cc}|\p{Bidi_Control}|[\u2028\u2029]/gu, toEscape);
}

/** JSON for programs. Since a person may look at it too, what JSON itself leaves unescaped of the same kind is escaped. */
export function toJson(value: unknown): string {
  return JSON.stringify(value, null, 2).replace(/[\u007f-\u009f\u2028\u2029]|\p{Bidi_Control}/gu, toEscape);
}

function toEscape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
