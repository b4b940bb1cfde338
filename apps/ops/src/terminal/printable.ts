/** Escapes characters that control a terminal or change the direction of text. Partners' texts may hold them. */
export function printable(text: string): string {
  return text.replace(/\p{Cc}|\p{Bidi_Control}|[\u2028\u2029]/gu, toEscape);
}

/** As {@link printable}, for several lines. */
export function printableLines(text: string): string {
  return text.split(/\r?\n/).map(printable).join("\n");
}

/** Formats JSON. It escapes the same characters, since JSON leaves some of them unescaped, and people read it too. */
export function toJson(value: unknown): string {
  return escapeJson(JSON.stringify(value, null, 2));
}

export function toJsonLine(value: unknown): string {
  return escapeJson(JSON.stringify(value));
}

function escapeJson(json: string): string {
  return json.replace(/[\u007f-\u009f\u2028\u2029]|\p{Bidi_Control}/gu, toEscape);
}

function toEscape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
