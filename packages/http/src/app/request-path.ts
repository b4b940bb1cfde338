import type { IncomingMessage } from "node:http";

/**
 * Returns the path and query of a request in either form that RFC 9112 requires servers to accept. Undefined: its target
 * has another form.
 */
export function toPath({ url = "" }: IncomingMessage): string | undefined {
  return /^(?:https?:\/\/[^/?#]*)?(\/[^#]*)$/i.exec(url)?.[1];
}
