/** Reads a language as a tag in its canonical form, such as `en`, `en-US` or `zh-Hant-TW`. */
export function readLanguage(sent: string): string | undefined {
  const tag = sent.trim();
  if (!/^[a-z]{2,3}(?:[-_][a-z]{4})?(?:[-_](?:[a-z]{2}|[0-9]{3}))?$/i.test(tag)) return undefined;
  return Intl.getCanonicalLocales(tag.replaceAll("_", "-"))[0];
}
