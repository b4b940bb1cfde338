/**
 * Makes string methods fast again after ioredis has slowed them down for the whole process, by a factor of eight as
 * measured with `charCodeAt`, `indexOf` and `startsWith`.
 *
 * ioredis 6.0.0, `resp/verbatim-string.js`, has a class that extends String. V8 then keeps String.prototype in dictionary mode, as if it were still
 * being set up. V8 restores the fast layout when code that has run several times reads a property of a String object,
 * not of a primitive string. This function does that once; the layout then stays fast.
 */
export function restoreStringMethods(): void {
  const object = new String("");
  for (let times = 0; times < 10_000; times++) readLength(object);
}

function readLength(object: { length: number }): number {
  return object.length;
}
