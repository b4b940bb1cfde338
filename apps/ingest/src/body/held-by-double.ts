/** A double holds every decimal number of so many digits, unless its exponent is extreme. */
const digitsAlwaysHeld = 15;

/**
 * Whether the double nearest to a number of JSON, printed in its shortest form, is the decimal value that was written:
 * so for `10.50` and `1.0e2`, not for `0.1234567890123456789`, `1e-400` or `1e400`.
 */
export function isHeldByDouble(written: string): boolean {
  if (written.length <= digitsAlwaysHeld && !/e/i.test(written)) return true;
  const [sent, held] = [toDecimal(written), toDecimal(String(Number(written)))];
  // Zero is zero, whatever its exponent.
  return sent.digits === held.digits && (sent.digits === "" || sent.exponent === held.exponent);
}

/** Without its sign, which every double holds. No digits: zero, or infinity, which no JSON can write. */
interface Decimal {
  /** Without zeros at either end, so that each value has one form only. */
  digits: string;
  /** Of the last digit. */
  exponent: number;
}

function toDecimal(written: string): Decimal {
  const [, whole = "", fraction = "", exponent = "0"] = /([0-9]+)(?:\.([0-9]+))?(?:e(.+))?/i.exec(written) ?? [];
  const digits = whole + fraction;
  const [start, end] = [countZeros(digits, 0, 1), digits.length - countZeros(digits, digits.length - 1, -1)];
  return { digits: digits.slice(start, end), exponent: Number(exponent) - fraction.length + digits.length - end };
}

/** A loop, since `/0+$/` takes quadratic time for a long row of zeros that ends with another digit. */
function countZeros(digits: string, from: number, step: 1 | -1): number {
  let count = 0;
  while (digits[from + step * count] === "0") count += 1;
  return count;
}
