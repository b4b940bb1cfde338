/** The encodings of bodies that we read. UTF-16 without a named order needs a byte order mark. */
export type Charset = "utf-8" | "windows-1252" | "utf-16" | "utf-16le" | "utf-16be";

/**
 * A lenient decoder replaces what it can't decode by U+FFFD. A reference or key would then be another one, and name a
 * booking or event that nobody meant. So whatever may hold one is decoded here.
 */
const createDecoder = (charset: string) => new TextDecoder(charset, { fatal: true, ignoreBOM: true });
const utf8 = createDecoder("utf-8");

/** @returns undefined: the bytes are not UTF-8. A byte order mark is part of the text */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  return decodeBy(utf8, bytes);
}

/** @returns undefined: the bytes are not of the charset. A byte order mark is part of the text */
export function decodeText(bytes: Uint8Array, charset: Charset): string | undefined {
  const order = charset === "utf-16" ? readByteOrder(bytes) : charset;
  return order === undefined ? undefined : decodeBy(createDecoder(order), bytes);
}

function decodeBy(decoder: typeof utf8, bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

function readByteOrder([first, second]: Uint8Array): string | undefined {
  if (first === 0xff && second === 0xfe) return "utf-16le";
  return first === 0xfe && second === 0xff ? "utf-16be" : undefined;
}

/**
 * Decodes a form, or the query of a URL. As in the WHATWG URL standard, an empty pair is not a field, and a percent sign
 * that begins no escape stands for itself.
 *
 * @returns the fields in their order; undefined: an escape is not UTF-8
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
  return decodeURIComponent(text.replaceAll("+", " ").replace(percentWithoutEscape, "%25"));
}

const percentWithoutEscape = /%(?![0-9a-fA-F]{2})/g;
