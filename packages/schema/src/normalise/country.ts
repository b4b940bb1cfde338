import { nameKey } from "./name-key.ts";
import { otherCountryCodes, otherCountryNames } from "./other-names.ts";
import { readTable } from "./read-table.ts";
import { remember } from "./remember.ts";
import { countries, formerCountries } from "./tables/countries.ts";

/**
 * Reads a country as its ISO 3166-1 alpha-2 code, from a code of two or three letters or from a name: English, in a
 * language of the country, or a usual other one.
 */
export function readCountry(sent: string): string | undefined {
  index ??= createIndex();
  const code = index.codes.get(sent);
  if (code !== undefined) return code;
  const name = sent.trim();
  if (name.length > maxCountryLength) return undefined;
  if (/^[A-Za-z]{1,3}$/.test(name)) return index.codes.get(name.toUpperCase());
  return readName(name);
}

const readName = remember((name: string): string | undefined => {
  const plain = name.normalize("NFKC");
  return index?.names.get(nameKey(name)) ?? (/^[A-Za-z]{2,3}$/.test(plain) ? readCountry(plain) : undefined);
});

/** The longest official name has 56 characters. */
export const maxCountryLength = 100;

interface Index {
  /** By code, in capitals. */
  codes: ReadonlyMap<string, string>;
  /** By the key of the name. */
  names: ReadonlyMap<string, string>;
}

let index: Index | undefined;

function createIndex(): Index {
  const codes = new Map<string, string>();
  const names = new Map<string, string>();
  for (const [code = "", alpha3 = "", ...keys] of readTable(countries)) {
    codes.set(code, code).set(alpha3, code);
    for (const key of keys) names.set(key, code);
  }
  const others = otherCountryCodes.map((row) => row.split(" "));
  for (const [other = "", code = ""] of [...readTable(formerCountries), ...others]) codes.set(other, code);
  for (const [code, otherNames] of Object.entries(otherCountryNames))
    for (const name of otherNames) names.set(nameKey(name), code);
  return { codes, names };
}
