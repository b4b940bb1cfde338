import { maxJsonValues } from "../payload/count-json-values.ts";
import { type ExactNumber, toNumber } from "./exact-number.ts";

/** The position at which a text cannot be accepted. It does not contain any of the text. */
export class JsonError extends Error {
  override name = "JsonError";
  readonly kind: "malformed" | "repeated-key" | "not-an-object";
  /** Line and column count from 1; columns are UTF-16 code units. */
  readonly line: number;
  readonly column: number;

  constructor(kind: JsonError["kind"], text: string, offset: number) {
    super(kind);
    this.kind = kind;
    const lines = text.slice(0, offset).split(/\r\n|[\r\n]/);
    this.line = lines.length;
    this.column = (lines.at(-1) ?? "").length + 1;
  }
}

/**
 * Parses JSON like `JSON.parse`, at several times its cost, but reports positions and duplicate keys. A number that a
 * double would change becomes an `ExactNumber`. Only the first `maxJsonValues` numbers are checked: a text with more is
 * refused anyway for having too many values, and checking 64 KiB of numbers with exponents more than doubles the cost.
 *
 * The parser is not recursive, so it can parse any depth, and a syntax error is reported before excessive nesting. The
 * parsers on npm that report positions are recursive and overflow the stack.
 *
 * @throws JsonError at the first character that cannot continue valid JSON, or at the second of two equal keys
 */
export function parseJsonExactly(text: string): unknown {
  return new JsonReader(text, { areKeysUnique: true, maxNumbers: maxJsonValues }).read();
}

/**
 * Parses by the same parser, but accepts what is stored: of equal keys the last one counts, as in `JSON.parse`, and every
 * number is checked.
 *
 * @throws JsonError
 */
export function parseJsonSlowly(text: string): unknown {
  return new JsonReader(text, { areKeysUnique: false, maxNumbers: Number.POSITIVE_INFINITY }).read();
}

/** An array or object that has not been read to its end. */
type Open = { items: unknown[] } | { fields: Record<string, unknown>; key: string };

/** Returned instead of a value when more values must be read first. */
const unfinished = Symbol();

const whiteSpace = /[ \t\n\r]+/y;
const digits = /[0-9]+/y;
/** The longest valid part of a string, without the closing quotation mark. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON wants them escaped
const startOfString = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*/y;
const startOfEscape = /\\(?:u[0-9a-fA-F]{0,3})?/y;

const ownField = { configurable: true, enumerable: true, writable: true };

class JsonReader {
  readonly #text: string;
  readonly #areKeysUnique: boolean;
  readonly #maxNumbers: number;
  readonly #open: Open[] = [];
  #at = 0;
  #numbersRead = 0;

  constructor(text: string, { areKeysUnique, maxNumbers }: { areKeysUnique: boolean; maxNumbers: number }) {
    this.#text = text;
    this.#areKeysUnique = areKeysUnique;
    this.#maxNumbers = maxNumbers;
  }

  read(): unknown {
    for (;;) {
      let value = this.#readStart();
      // The value may complete its container, which is then itself a value.
      while (value !== unfinished) {
        this.#skip(whiteSpace);
        const open = this.#open.at(-1);
        if (open === undefined) return this.#at === this.#text.length ? value : this.#fail();
        value = this.#addTo(open, value);
      }
    }
  }

  /** @returns a scalar or an empty container; `unfinished` at the start of another container */
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

  /** @returns the container if it ends here, otherwise `unfinished` */
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
    if (this.#areKeysUnique && Object.hasOwn(fields, key)) throw new JsonError("repeated-key", this.#text, start);
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

  #readNumber(): number | ExactNumber {
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
    return this.#numbersRead > this.#maxNumbers ? Number(written) : toNumber(written);
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
    throw new JsonError("malformed", this.#text, this.#at);
  }
}
