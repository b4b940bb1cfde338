import { expect, test } from "vitest";
import { readLanguage } from "./language.ts";
import { readTable } from "./read-table.ts";
import { languageAliases } from "./tables/languages.ts";

// The tables are read at the first call, so the first test tries all.
test("codes, what old codes become, and names are read from the tables", () => {
  const tags = readTable(languageAliases).map(([, tag = ""]) => tag);
  expect(tags.length).toBeGreaterThan(100);
  expect(tags.filter((tag) => readLanguage(tag) !== tag)).toEqual([]);
  const sent = ["yue", "swc", "zh-CHS", "Cantonese", "Français", "Farsi"];
  expect(sent.map(readLanguage)).toEqual(["yue", "sw-CD", "zh-Hans", "yue", "fr", "fa"]);
});

test.each([
  ["en", "en"],
  ["EN", "en"],
  [" en\n", "en"],
  ["en-US", "en-US"],
  ["en_us", "en-US"],
  ["zh-hant-tw", "zh-Hant-TW"],
  ["es-419", "es-419"],
  ["sr-Latn-RS", "sr-Latn-RS"],
  ["ca-ES-valencia", "ca-ES-valencia"],
  ["de-CH-1996", "de-CH-1996"],
  // Longer codes, of ISO 639-2 and 639-3
  ["eng", "en"],
  ["ger", "de"],
  ["deu", "de"],
  ["fil", "fil"],
  ["yue", "yue"],
  ["cmn", "zh"],
  // Former codes
  ["iw", "he"],
  ["in", "id"],
  ["ji", "yi"],
  ["mo", "ro"],
  ["sh", "sr-Latn"],
  ["sh-Cyrl", "sr-Cyrl"],
  ["swc", "sw-CD"],
  ["tl", "fil"],
  // Regions that are no ISO codes
  ["en-UK", "en-GB"],
  ["en-USA", "en-US"],
  // Locales of systems and browsers
  ["en_US.UTF-8", "en-US"],
  ["de_DE@euro", "de-DE"],
  ["en-US-u-hc-h12", "en-US"],
  ["en-US,en;q=0.9,de;q=0.8", "en-US"],
  ["de ;q=0.9", "de"],
  ["zh-CHS", "zh-Hans"],
  ["zh-CHT", "zh-Hant"],
  // Names
  ["English", "en"],
  ["deutsch", "de"],
  ["Français", "fr"],
  ["francais", "fr"],
  ["日本語", "ja"],
  ["Farsi", "fa"],
  ["Portuguese (Brazil)", "pt-BR"],
  ["French (Canada) ; English", "fr-CA"],
  ["Simplified Chinese", "zh-Hans"],
  // Long values
  ["en,".padEnd(200, "x"), "en"],
  [`${" ".repeat(200)}en`, "en"],
])("%j is %s", (sent, tag) => {
  expect(readLanguage(sent)).toBe(tag);
});

test.each([
  ...["", " ", ",", "e", "xx", "und", "en-", "-en", "en--US", "en-XX", "en-ABC", "C", "POSIX", "x-klingon", "Elvish"],
  ...["English (Narnia)", "Elvish (France)", "constructor", "__proto__", `en${"-variant1".repeat(30)}`, "sr_RS@latin"],
  ...["de@euron", "(x) French (Canada)", "French (Canada) x", "en,".padEnd(201, "x")],
])("%j is no language", (sent) => {
  expect(readLanguage(sent)).toBeUndefined();
});
