/** Reads a currency as its ISO 4217 code. */
export function readCurrency(sent: string): string | undefined {
  const code = sent.trim();
  return /^[A-Za-z]{3}$/.test(code) ? code.toUpperCase() : undefined;
}
