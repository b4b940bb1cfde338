const maxCharacters = 200;
/** Control characters, those that turn text around or can't be seen, and separators of lines. */
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;

/**
 * A name that can be recorded and shown, as a provider or a proxy says it. Nothing is taken out: whoever could choose what
 * is left would be somebody else.
 *
 * @returns undefined: it can't
 */
export function readName(given: unknown): string | undefined {
  if (typeof given !== "string" || given === "" || given !== given.trim()) return undefined;
  return given.length > maxCharacters || unseen.test(given) ? undefined : given;
}
