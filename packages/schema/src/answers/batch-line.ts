import type { Answer } from "./answer.ts";

const success = '{"success":true,';

/** A line of the answer to a batch: what the event would have got alone, and how long to wait if it may be sent again. */
export function toBatchLine(line: number, { status, body, headers }: Answer): string {
  const members = body.slice(body.startsWith(success) ? success.length : 1);
  const retryAfter = headers?.["Retry-After"];
  return `{"line":${line},"status":${status},${retryAfter === undefined ? "" : `"retryAfter":${retryAfter},`}${members}\n`;
}
