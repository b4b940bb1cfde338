import { otherCurrencyNames } from "./other-names.ts";
import { readTable } from "./read-table.ts";
import { currencies } from "./tables/currencies.ts";

/** Reads a currency as its ISO 4217 code. Withdrawn ones are still read, and names and signs that mean one currency. */
export function readCurrency(sent: string): string | undefined {
  codes ??= createCodes();
  const code = codes.get(sent);
  if (code !== undefined) return code;
  const text = sent.trim();
  return text.length > maxLength ? undefined : codes.get(text.toUpperCase());
}

const maxLength = 10;

/** By code, name or sign, in capitals. */
let codes: ReadonlyMap<string, string> | undefined;

/** The runtime knows currencies that are newer than the table, and the table those that the runtime has forgotten. */
function createCodes(): ReadonlyMap<string, string> {
  const known = [...readTable(currencies).flat(), ...Intl.supportedValuesOf("currency")];
  const others = Object.entries(otherCurrencyNames).flatMap(([code, names]) =>
    names.map((name) => [name, code] as const),
  );
  return new Map([...known.map((code) => [code, code] as const), ...others]);
}
