/** A double holds every decimal number of so many digits, unless its exponent is extreme. */
const digitsAlwaysHeld = 15;

/**
 * Whether the double nearest to a number of JSON, printed in its shortest form, is the decimal value that was written:
 * so for `10.50` and `1.0e2`, not for `0.1234567890123456789`, `1e-400` or `1e400`.
 */
export function isHeldByDouble(written: string): boolean {
  if (written.length <= digitsAlwaysHeld && !/e/i.test(written)) return true;
  // The digits are enough: numbers with the same digits and other exponents differ tenfold, so never share a double.
  return digitsOf(written) === digitsOf(String(Number(written)));
}

/** Without zeros at either end, so that each value has one form only. None: zero, or infinity, which JSON can't write. */
function digitsOf(written: string): string {
  const digits = written.replace(/e.*/i, "").replace(/\D/g, "");
  return digits.slice(countZeros(digits, 0, 1), digits.length - countZeros(digits, digits.length - 1, -1));
}

/** A loop, since `/0+$/` takes quadratic time for a long row of zeros that ends with another digit. */
function countZeros(digits: string, from: number, step: 1 | -1): number {
  let count = 0;
  while (digits[from + step * count] === "0") count += 1;
  return count;
}
