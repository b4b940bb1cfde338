/** A double keeps every decimal number with this many digits, unless its exponent is extreme. */
const digitsAlwaysHeld = 15;

/**
 * Returns whether a JSON number keeps its digits as a double: whether the nearest double, printed in its shortest form,
 * has the decimal value that was written. This is true of `10.50` and `1.0e2`, and false of `0.1234567890123456789`,
 * `1e-400` and `1e400`.
 */
export function isExactDouble(written: string): boolean {
  if (written.length <= digitsAlwaysHeld && !/e/i.test(written)) return true;
  // Comparing digits is sufficient: numbers with the same digits and different exponents differ at least tenfold, so
  // they never have the same nearest double.
  return digitsOf(written) === digitsOf(String(Number(written)));
}

/**
 * Strips zeros at both ends so that each value has only one form. The result is empty for zero and for infinity, which
 * JSON cannot express.
 */
function digitsOf(written: string): string {
  return stripZeros(written.replace(/e.*/i, "").replace(/\D/g, ""));
}

export function stripZeros(digits: string): string {
  return digits.slice(countZeros(digits, 0, 1), digits.length - countZeros(digits, digits.length - 1, -1));
}

/** A loop, because `/0+$/` takes quadratic time for a long run of zeros followed by another digit. */
function countZeros(digits: string, from: number, step: 1 | -1): number {
  let count = 0;
  while (digits[from + step * count] === "0") count += 1;
  return count;
}
