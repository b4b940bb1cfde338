import { maxJsonValues } from "@booking-events/schema";
import { isHeldByDouble } from "./held-by-double.ts";

/** Says where a text stops being what we can read, and nothing of what stands there. */
export class JsonFault extends Error {
  override name = "JsonFault";
  readonly kind: "malformed" | "repeated-key";
  /** Both count from 1, columns in UTF-16 code units. */
  readonly line: number;
  readonly column: number;

  constructor(kind: JsonFault["kind"], text: string, offset: number) {
    super(kind);
    this.kind = kind;
    const lines = text.slice(0, offset).split(/\r\n|[\r\n]/);
    this.line = lines.length;
    this.column = (lines.at(-1) ?? "").length + 1;
  }
}

/**
 * `JSON.parse` for texts of which more has to be known, at several times its price. A number that a double does not hold
 * as it is written becomes NaN, which no text of JSON gives otherwise. Only the first `maxJsonValues`
 * numbers are looked at: a text with more is refused for having too many values, and 64 KiB of numbers with exponents
 * cost more than twice as much if each is.
 *
 * Nothing here calls itself, so any nesting is read: what is wrong with the syntax is told before what is too deep. The
 * parsers on npm that know positions do, and overflow the stack.
 *
 * @throws JsonFault at the first character with which no JSON goes on, or at the second one of two keys that are equal
 */
export function parseJsonExactly(text: string): unknown {
  return new JsonReader(text).read();
}

/** An array or object whose end was not read yet. */
type Open = { items: unknown[] } | { fields: Record<string, unknown>; key: string };

/** In place of a value: another one has to be read first. */
const unfinished = Symbol();

const whiteSpace = /[ \t\n\r]+/y;
const digits = /[0-9]+/y;
/** As much of a string as is right, without the quotation mark at its end. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON wants them escaped
const startOfString = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*/y;
const startOfEscape = /\\(?:u[0-9a-fA-F]{0,3})?/y;

const ownField = { configurable: true, enumerable: true, writable: true };

class JsonReader {
  readonly #text: string;
  readonly #open: Open[] = [];
  #at = 0;
  #numbersRead = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): unknown {
    for (;;) {
      let value = this.#readStart();
      // It may be the last one in its container, which is then complete itself.
      while (value !== unfinished) {
        this.#skip(whiteSpace);
        const open = this.#open.at(-1);
        if (open === undefined) return this.#at === this.#text.length ? value : this.#fail();
        value = this.#addTo(open, value);
      }
    }
  }

  /** @returns a scalar or an empty container; `unfinished` after the start of any other */
  #readStart(): unknown {
    this.#skip(whiteSpace);
    switch (this.#text[this.#at]) {
      case "{":
        return this.#readStartOfObject();
      case "[":
        return this.#readStartOfArray();
      case '"':
        return this.#readString();
      case "t":
        return this.#readWord("true", true);
      case "f":
        return this.#readWord("false", false);
      case "n":
        return this.#readWord("null", null);
      default:
        return this.#readNumber();
    }
  }

  #readStartOfObject(): unknown {
    const fields = {};
    this.#expect("{");
    this.#skip(whiteSpace);
    if (this.#take("}")) return fields;
    this.#open.push({ fields, key: this.#readKey(fields) });
    return unfinished;
  }

  #readStartOfArray(): unknown {
    const items: unknown[] = [];
    this.#expect("[");
    this.#skip(whiteSpace);
    if (this.#take("]")) return items;
    this.#open.push({ items });
    return unfinished;
  }

  /** @returns the container if it ends here, else `unfinished` */
  #addTo(open: Open, value: unknown): unknown {
    if ("items" in open) {
      open.items.push(value);
      if (this.#take(",")) return unfinished;
      this.#expect("]");
      this.#open.pop();
      return open.items;
    }
    // An assignment to `__proto__` would set the prototype.
    if (open.key === "__proto__") Object.defineProperty(open.fields, open.key, { ...ownField, value });
    else open.fields[open.key] = value;
    if (this.#take(",")) {
      this.#skip(whiteSpace);
      open.key = this.#readKey(open.fields);
      return unfinished;
    }
    this.#expect("}");
    this.#open.pop();
    return open.fields;
  }

  #readKey(fields: object): string {
    const start = this.#at;
    const key = this.#readString();
    this.#skip(whiteSpace);
    this.#expect(":");
    if (Object.hasOwn(fields, key)) throw new JsonFault("repeated-key", this.#text, start);
    return key;
  }

  #readString(): string {
    const start = this.#at;
    this.#skip(startOfString);
    if (!this.#take('"')) {
      if (this.#at > start) this.#skip(startOfEscape);
      this.#fail();
    }
    return JSON.parse(this.#text.slice(start, this.#at));
  }

  #readWord<Value>(word: string, value: Value): Value {
    for (const letter of word) this.#expect(letter);
    return value;
  }

  #readNumber(): number {
    const start = this.#at;
    this.#take("-");
    if (!this.#take("0")) this.#readDigits();
    if (this.#take(".")) this.#readDigits();
    if (this.#take("e") || this.#take("E")) {
      if (!this.#take("+")) this.#take("-");
      this.#readDigits();
    }
    const written = this.#text.slice(start, this.#at);
    this.#numbersRead += 1;
    return this.#numbersRead > maxJsonValues || isHeldByDouble(written) ? Number(written) : Number.NaN;
  }

  #readDigits(): void {
    const start = this.#at;
    this.#skip(digits);
    if (this.#at === start) this.#fail();
  }

  #skip(pattern: RegExp): void {
    pattern.lastIndex = this.#at;
    if (pattern.test(this.#text)) this.#at = pattern.lastIndex;
  }

  #take(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }

  #expect(character: string): void {
    if (!this.#take(character)) this.#fail();
  }

  #fail(): never {
    throw new JsonFault("malformed", this.#text, this.#at);
  }
}
