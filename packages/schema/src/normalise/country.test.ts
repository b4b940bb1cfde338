import { expect, test } from "vitest";
import { readCountry } from "./country.ts";

// The tables are read at the first call, so the first test tries all.
test("codes, other and former ones, and names are read from the tables", () => {
  const sent = ["GB", "GBR", "EL", "UAE", "DD", "Deutschland", "Scotland"];
  expect(sent.map(readCountry)).toEqual(["GB", "GB", "GR", "AE", "DE", "DE", "GB"]);
});

test.each([
  // Codes
  ["GB", "GB"],
  ["gb", "GB"],
  [" GB\n", "GB"],
  ["GBR", "GB"],
  ["st", "ST"],
  ["XK", "XK"],
  ["XKX", "XK"],
  // Codes that are not ISO's, or no longer
  ["UK", "GB"],
  ["EL", "GR"],
  ["UAE", "AE"],
  ["GER", "DE"],
  ["D", "DE"],
  ["DD", "DE"],
  ["TP", "TL"],
  ["ROM", "RO"],
  // English names
  ["United Kingdom", "GB"],
  ["the united kingdom", "GB"],
  ["U.K.", "GB"],
  ["U.S.A.", "US"],
  ["U.S.", "US"],
  ["U.A.E.", "AE"],
  ["ＧＢ", "GB"],
  ["ＧＢＲ", "GB"],
  ["United States of America", "US"],
  ["Scotland", "GB"],
  ["Trinidad and Tobago", "TT"],
  ["Trinidad & Tobago", "TT"],
  ["St. Lucia", "LC"],
  ["Saint Lucia", "LC"],
  ["The Gambia", "GM"],
  ['"The Gambia"', "GM"],
  [`${" ".repeat(100)}The Gambia`, "GM"],
  [`The Gambia${".".repeat(90)}`, "GM"],
  ["Côte d’Ivoire", "CI"],
  ["COTE D'IVOIRE", "CI"],
  ["Ivory Coast", "CI"],
  ["Curaçao", "CW"],
  ["Reunion", "RE"],
  ["Guinea-Bissau", "GW"],
  ["Guinea", "GN"],
  // Names that changed, and ISO's
  ["Turkey", "TR"],
  ["Türkiye", "TR"],
  ["Czech Republic", "CZ"],
  ["Czechia", "CZ"],
  ["Swaziland", "SZ"],
  ["Eswatini", "SZ"],
  ["Korea, Republic of", "KR"],
  ["North Korea", "KP"],
  ["Viet Nam", "VN"],
  ["Hong Kong", "HK"],
  ["Congo, The Democratic Republic of the", "CD"],
  ["Congo", "CG"],
  ["Bolivia (Plurinational State of)", "BO"],
  // Native names
  ["Deutschland", "DE"],
  ["España", "ES"],
  ["Espana", "ES"],
  ["ÖSTERREICH", "AT"],
  ["Suisse", "CH"],
  ["België", "BE"],
  ["Belgique", "BE"],
  ["Россия", "RU"],
  ["Ελλάδα", "GR"],
  ["日本", "JP"],
  ["中国", "CN"],
  ["대한민국", "KR"],
  ["भारत", "IN"],
  ["ไทย", "TH"],
  ["المغرب", "MA"],
  ["ישראל", "IL"],
])("%j is %s", (sent, country) => {
  expect(readCountry(sent)).toBe(country);
});

test.each([
  ...["", " ", "ZZ", "EU", "SU", "ABC", "Narnia", "British", "826", "Virgin Islands", "constructor", "__proto__"],
  ...["Germany, Berlin", "GB;DE", `Germany${".".repeat(94)}`],
  // What people write for "none", with the letters of a code
  ...["N/A", "n.a.", "N. A.", "s/n", "S/D", "n/c", "N-I"],
])("%j is no country", (sent) => {
  expect(readCountry(sent)).toBeUndefined();
});
