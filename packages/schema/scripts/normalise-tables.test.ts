import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { readCountry, readLanguage } from "../src/normalise/index.ts";
import { createTables } from "./normalise-tables.ts";

const directory = new URL("../src/normalise/tables/", import.meta.url);

test("the committed tables are up to date; otherwise run `pnpm --filter @booking-events/schema normalise-tables`", () => {
  const committed = readdirSync(directory).map((name) => [name, readFileSync(new URL(name, directory), "utf8")]);
  expect(Object.fromEntries(committed)).toEqual(createTables());
});

/** The runtime's own names, with the codes from which it has them. */
function namesOf(type: "region" | "language", alphabet: string): [code: string, name: string][] {
  const names = new Intl.DisplayNames("en", { type, fallback: "none" });
  const letters = [...alphabet];
  const codes = letters.flatMap((one) => letters.map((other) => one + other));
  return codes.flatMap((code) => {
    const name = names.of(code);
    return name === undefined ? [] : [[code, name]];
  });
}

describe("Intl.DisplayNames and the tables agree", () => {
  /** Reserved for other purposes than ISO's countries, and no longer used for one country. */
  const notCountries = "AC AN CP CQ CS DG EA EU EZ IC NT PC SU TA UN XA XB YU ZZ".split(" ");
  test("about countries", () => {
    const all = namesOf("region", "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    for (const [code, name] of all) {
      if (notCountries.includes(code)) expect(readCountry(code), code).toBeUndefined();
      else expect(readCountry(name), `${code} ${name}`).toBe(readCountry(code));
    }
    const countries = new Set(all.flatMap(([code]) => readCountry(code) ?? []));
    // ISO 3166-1 has 249, and Kosovo has none of them.
    expect(countries.size).toBe(250);
  });

  test("about languages", () => {
    for (const [code, name] of namesOf("language", "abcdefghijklmnopqrstuvwxyz")) {
      // The tag of sh has a script: Serbian (Latin).
      if (code !== "sh") expect(readLanguage(name), `${code} ${name}`).toBe(readLanguage(code));
    }
  });
});
