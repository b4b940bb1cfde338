/**
 * A lenient decoder replaces what it can't decode by U+FFFD. A reference or key would then be another one, and name a
 * booking or event that nobody meant. So whatever may hold one is decoded here.
 */
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** @returns undefined: the bytes are not UTF-8. A byte order mark is part of the text */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}

/**
 * Decodes a form, or the query of a URL. As in the WHATWG URL standard, an empty pair is not a field.
 *
 * @returns the fields in their order; undefined: an escape is malformed, or is not UTF-8
 */
export function decodeFormFields(text: string): [name: string, value: string][] | undefined {
  try {
    return text
      .split("&")
      .filter((pair) => pair !== "")
      .map((pair) => {
        const equalsAt = pair.indexOf("=");
        if (equalsAt === -1) return [decodeFormText(pair), ""];
        return [decodeFormText(pair.slice(0, equalsAt)), decodeFormText(pair.slice(equalsAt + 1))];
      });
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}

function decodeFormText(text: string): string {
  // Most names and many values need no decoding, and checking that is cheaper than decoding.
  if (!text.includes("%") && !text.includes("+")) return text;
  return decodeURIComponent(text.replaceAll("+", " "));
}
