import { readCountry } from "./country.ts";
import { nameKey } from "./name-key.ts";
import { otherLanguageNames } from "./other-names.ts";
import { readTable } from "./read-table.ts";
import { languageAliases, languages } from "./tables/languages.ts";

/**
 * Reads a language as a tag in its canonical form, such as `en`, `en-US` or `zh-Hant-TW`: from a tag, a code of ISO 639,
 * a locale such as `de_DE.UTF-8`, or the name of the language in English or in itself. Of a list, the first counts.
 */
export function readLanguage(sent: string): string | undefined {
  index ??= createIndex();
  if (isTidy(index, sent)) return sent;
  const text = sent.trim();
  if (text.length > maxLength) return undefined;
  const [first = ""] = text.split(/[,;]/, 1);
  return readTag(index, first.trim()) ?? readName(index, first);
}

/** Most are `en` or `en-GB`. */
function isTidy({ tags }: Index, sent: string): boolean {
  const code = sent.slice(0, 2);
  if (tags.get(code) !== code) return false;
  return sent.length === 2 || (/^..-[A-Z]{2}$/.test(sent) && readCountry(sent.slice(3)) === sent.slice(3));
}

const maxLength = 200;

/** Language, script, region and variants. Extensions, such as the `u-hc-h12` of en-US-u-hc-h12, are of no use here. */
const tagPattern =
  /^([a-z]{2,3})(?:-([a-z]{4}))?(?:-([a-z]{2,3}|[0-9]{3}))?((?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*)(?:-[a-z0-9](?:-[a-z0-9]{2,8})+)*$/;

function readTag({ tags }: Index, text: string): string | undefined {
  const tag = text
    .toLowerCase()
    .replaceAll("_", "-")
    .replace(/\.[a-z0-9-]+$|@euro$/, "");
  const [, code = "", script, region, variants = ""] = tagPattern.exec(tag) ?? [];
  const language = tags.get(code);
  if (language === undefined) return undefined;
  const country = region === undefined || /^[0-9]/.test(region) ? region : readCountry(region);
  if (region !== undefined && country === undefined) return undefined;
  // The tag of an old code may have a script or a region itself: sh is sr-Latn.
  const [base = "", ...rest] = language.split("-");
  const [ownScript] = rest.filter((part) => part.length === 4);
  const [ownRegion] = rest.filter((part) => part.length === 2);
  const parts = [base, script === undefined ? ownScript : toTitleCase(script), country ?? ownRegion];
  return parts.filter((part) => part !== undefined).join("-") + variants;
}

function toTitleCase(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** Reads `Portuguese` and `Portuguese (Brazil)`. */
function readName({ names }: Index, text: string): string | undefined {
  const whole = names.get(nameKey(text));
  if (whole !== undefined) return whole;
  const [, name, region] = /^([^()]+)\(([^()]+)\)$/.exec(text.trim()) ?? [];
  if (name === undefined || region === undefined) return undefined;
  const [language, country] = [names.get(nameKey(name)), readCountry(region)];
  return language === undefined || country === undefined ? undefined : `${language}-${country}`;
}

interface Index {
  /** Tags by code: `en` by `en` and by `eng`. */
  tags: ReadonlyMap<string, string>;
  /** Tags by the key of the name. */
  names: ReadonlyMap<string, string>;
}

let index: Index | undefined;

function createIndex(): Index {
  const tags = new Map<string, string>();
  const names = new Map<string, string>();
  for (const [code = "", ...keys] of readTable(languages)) {
    tags.set(code, code);
    for (const key of keys) names.set(key, code);
  }
  for (const [code = "", tag = ""] of readTable(languageAliases)) {
    const [base = ""] = tag.split("-");
    tags.set(code, tag);
    // The table has no languages without a name.
    if (!tags.has(base)) tags.set(base, base);
  }
  for (const [tag, others] of Object.entries(otherLanguageNames))
    for (const name of others) names.set(nameKey(name), tag);
  return { tags, names };
}
