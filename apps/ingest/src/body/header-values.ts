import type { IncomingMessage } from "node:http";

/**
 * Each value that a header was sent with. Of some headers, `req.headers` has the first one only.
 *
 * @param name in lower case
 */
export function headerValues({ rawHeaders }: Pick<IncomingMessage, "rawHeaders">, name: string): string[] {
  const values: string[] = [];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const sent = rawHeaders[index] ?? "";
    if (sent.length === name.length && sent.toLowerCase() === name) values.push(rawHeaders[index + 1] ?? "");
  }
  return values;
}
