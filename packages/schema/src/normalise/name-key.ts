/**
 * Returns what two ways to write a name have in common: its letters and digits, in lower case and without accents.
 * `St. Lucia` and `Saint Lucia`, `the Gambia` and `GAMBIA` are the same.
 */
export function nameKey(name: string): string {
  const lower = name.toLowerCase().trim();
  const words = /^[a-z ]*$/.test(lower) ? lower : withoutAccents(lower);
  const full = words.includes("st ") ? words.replace(/\bst /g, "saint ") : words;
  return (full.startsWith("the ") ? full.slice("the ".length) : full).replaceAll(" ", "");
}

function withoutAccents(lower: string): string {
  return lower
    .normalize("NFKD")
    .replace(/[\u0300-\u036f'\u2019]/g, "")
    .normalize("NFC")
    .replaceAll("&", " and ")
    .replace(/[^\p{L}\p{M}\p{N}]+/gu, " ")
    .trim();
}
