/** 1 to 255 visible ASCII characters and spaces (0x20 to 0x7E): no control characters. */
export const idempotencyKeyPattern: RegExp = /^[ -~]{1,255}$/;

export function isIdempotencyKey(value: string): boolean {
  return idempotencyKeyPattern.test(value);
}
