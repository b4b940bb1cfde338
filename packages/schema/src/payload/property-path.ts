/** Without a limit, many violations below a long name would make an answer of megabytes. */
const maxNameLength = 255;

/**
 * Returns a name as a `propertyPath` shows it. It never cuts a surrogate pair: many JSON parsers reject an unpaired
 * surrogate and with it the whole answer.
 */
export function shortenName(name: string): string {
  if (name.length <= maxNameLength) return name.toWellFormed();
  const splitsPair = (name.codePointAt(maxNameLength - 1) ?? 0) > 0xffff;
  return `${name.slice(0, splitsPair ? maxNameLength - 1 : maxNameLength)}…`.toWellFormed();
}
