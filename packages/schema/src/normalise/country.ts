/** Reads a country as its ISO 3166-1 alpha-2 code. */
export function readCountry(sent: string): string | undefined {
  const code = sent.trim();
  return /^[A-Za-z]{2}$/.test(code) ? code.toUpperCase() : undefined;
}
