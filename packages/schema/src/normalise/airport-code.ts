/** Reads an IATA code, which is judged by its form only: three letters, in capitals afterwards. */
export function readAirportCode(sent: string): string | undefined {
  const code = sent.trim();
  return /^[A-Za-z]{3}$/.test(code) ? code.toUpperCase() : undefined;
}
