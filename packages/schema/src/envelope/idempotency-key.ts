/** 1 to 255 visible ASCII characters (0x21 to 0x7E): no spaces, no control characters. */
export const idempotencyKeyPattern: RegExp = /^[!-~]{1,255}$/;

export function isIdempotencyKey(value: string): boolean {
  return idempotencyKeyPattern.test(value);
}
