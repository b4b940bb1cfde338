/** Reads a time zone as its IANA name. */
export function readTimeZone(sent: string): string | undefined {
  const name = sent.trim();
  return /^(?:UTC|[A-Za-z]{2,20}\/[A-Za-z_/+-]{2,40})$/.test(name) ? name : undefined;
}
