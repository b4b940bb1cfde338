import { expect, test } from "vitest";
import { readCurrency } from "./currency.ts";

test.each([
  ["EUR", "EUR"],
  ["eur", "EUR"],
  [" usd\t", "USD"],
  // Withdrawn
  ["HRK", "HRK"],
  ["BGN", "BGN"],
  ["DEM", "DEM"],
  ["LTL", "LTL"],
  ["VEF", "VEF"],
  ["ZWL", "ZWL"],
  // New
  ["XCG", "XCG"],
  ["ZWG", "ZWG"],
  ["SLE", "SLE"],
  // Names and signs of one currency
  ["€", "EUR"],
  ["Euro", "EUR"],
  ["euros", "EUR"],
  ["£", "GBP"],
  ["US$", "USD"],
  ["A$", "AUD"],
  ["R$", "BRL"],
  ["RMB", "CNY"],
  ["zł", "PLN"],
  ["₹", "INR"],
])("%j is %s", (sent, currency) => {
  expect(readCurrency(sent)).toBe(currency);
});

test.each([
  ...[
    "",
    " ",
    "$",
    "¥",
    "kr",
    "978",
    "ABC",
    "XXX",
    "BTC",
    "EU",
    "EURUSD",
    "dollars",
    "EUR GBP",
    "toString",
    "__proto__",
  ],
])("%j is no currency", (sent) => {
  expect(readCurrency(sent)).toBeUndefined();
});

test("every currency that the runtime knows is one", () => {
  for (const code of Intl.supportedValuesOf("currency")) expect(readCurrency(code.toLowerCase())).toBe(code);
});
