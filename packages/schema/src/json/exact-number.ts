import { isExactDouble, stripZeros } from "./exact-double.ts";

/**
 * A JSON number whose decimal value a double would change, such as `9007199254740993` or `1e400`. `JSON.stringify` writes
 * it as it was, in Node 22, Chrome 114, Firefox 135, Safari 18.4 and later.
 */
export class ExactNumber {
  /** As in the JSON text, with its sign, point and exponent. */
  readonly digits: string;

  /** @param digits a number in JSON's notation */
  constructor(digits: string) {
    this.digits = digits;
  }

  /** @throws TypeError in older runtimes, which have no way to write it */
  toJSON(): unknown {
    // TypeScript's library does not declare it yet.
    const { rawJSON } = JSON as typeof JSON & { rawJSON?: (text: string) => unknown };
    if (rawJSON === undefined) {
      throw new TypeError("JSON.stringify cannot write an ExactNumber before Node 22. Send the digits as a string.");
    }
    return rawJSON(this.digits);
  }
}

/** @param written a number in JSON's notation */
export function toNumber(written: string): number | ExactNumber {
  return isExactDouble(written) ? Number(written) : new ExactNumber(written);
}

/** Returns whether the value is a number that JSON has: not NaN, and not infinite. */
export function isJsonNumber(value: unknown): value is number | ExactNumber {
  return Number.isFinite(value) || value instanceof ExactNumber;
}

/** How many digits a number has before and after its point if it is written without an exponent. */
export function countDigits(value: number | ExactNumber): { before: number; after: number } {
  const { digits, pointAt } = readDecimal(textOf(value));
  return { before: Math.max(1, pointAt), after: Math.max(0, digits.length - pointAt) };
}

/**
 * Writes the number as RFC 8785 demands, by the rule of `Number.prototype.toString`, but with all of its digits. So
 * numbers are written alike exactly if they have the same decimal value.
 */
export function toCanonicalNumber(value: number | ExactNumber): string {
  if (typeof value === "number") return JSON.stringify(value);
  const { sign, digits: written, pointAt } = readDecimal(value.digits);
  const digits = stripZeros(written);
  if (digits === "") return "0";
  if (pointAt > -6 && pointAt <= 0) return `${sign}0.${"0".repeat(-pointAt)}${digits}`;
  if (pointAt > 0 && pointAt <= 21) {
    const fraction = digits.slice(pointAt);
    return `${sign}${digits.slice(0, pointAt).padEnd(pointAt, "0")}${fraction && `.${fraction}`}`;
  }
  const exponent = pointAt - 1;
  const mantissa = digits.length === 1 ? digits : `${digits[0]}.${digits.slice(1)}`;
  return `${sign}${mantissa}e${exponent < 0 ? "" : "+"}${exponent}`;
}

function textOf(value: number | ExactNumber): string {
  return typeof value === "number" ? String(value) : value.digits;
}

const parts = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([-+]?[0-9]+))?$/;

/** The value is ±0.DIGITS × 10^`pointAt`. The digits have no zeros at their start. */
function readDecimal(written: string): { sign: string; digits: string; pointAt: number } {
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = parts.exec(written) ?? [];
  const all = whole + fraction;
  const zeros = all.search(/[1-9]/);
  if (zeros === -1) return { sign, digits: "", pointAt: 0 };
  return { sign, digits: all.slice(zeros), pointAt: whole.length - zeros + Number(exponent) };
}
