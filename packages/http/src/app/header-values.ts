import type { IncomingMessage } from "node:http";

/**
 * Returns every value of a header. `req.headers` has only the first value of some headers.
 *
 * @param name in lowercase
 */
export function headerValues({ rawHeaders }: Pick<IncomingMessage, "rawHeaders">, name: string): string[] {
  const values: string[] = [];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const sent = rawHeaders[index] ?? "";
    if (sent.length === name.length && sent.toLowerCase() === name) values.push(rawHeaders[index + 1] ?? "");
  }
  return values;
}
