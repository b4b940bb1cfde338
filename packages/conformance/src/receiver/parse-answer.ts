/** An answer as it arrived. */
export interface Answer {
  status: number;
  /** Names in lower case. Repeated headers are joined by ", ". */
  headers: Readonly<Record<string, string>>;
  /** Status line and headers, as sent. */
  head: string;
  body: string;
}

/**
 * Parses the final answer of a connection. Interim answers, such as 100, are skipped.
 *
 * @param isClosed true if no more bytes will arrive
 * @returns undefined if the answer is not complete
 */
export function parseAnswer(received: Buffer, isClosed: boolean): Answer | undefined {
  const headEnd = received.indexOf("\r\n\r\n");
  if (headEnd === -1) return undefined;
  const head = received.subarray(0, headEnd).toString("latin1");
  const status = Number(/^HTTP\/1\.\d (\d{3})/.exec(head)?.[1]);
  const rest = received.subarray(headEnd + 4);
  if (status < 200) return parseAnswer(rest, isClosed);
  const headers = parseHeaders(head);
  const body = takeBody(rest, headers, isClosed);
  return body === undefined ? undefined : { status, headers, head, body };
}

function parseHeaders(head: string): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const line of head.split("\r\n").slice(1)) {
    const [, name = "", value = ""] = /^([^:]*):[ \t]*(.*?)[ \t]*$/.exec(line) ?? [];
    const key = name.toLowerCase();
    headers[key] = headers[key] === undefined ? value : `${headers[key]}, ${value}`;
  }
  return headers;
}

function takeBody(rest: Buffer, headers: Record<string, string>, isClosed: boolean): string | undefined {
  if (/\bchunked\b/i.test(headers["transfer-encoding"] ?? "")) return joinChunks(rest);
  const length = headers["content-length"];
  if (length === undefined) return isClosed ? rest.toString() : undefined;
  return rest.length < Number(length) ? undefined : rest.subarray(0, Number(length)).toString();
}

function joinChunks(rest: Buffer): string | undefined {
  const chunks: Buffer[] = [];
  for (let at = 0; ; ) {
    const lineEnd = rest.indexOf("\r\n", at);
    if (lineEnd === -1) return undefined;
    const size = Number.parseInt(rest.subarray(at, lineEnd).toString("latin1"), 16);
    const start = lineEnd + 2;
    // Anything but a number ends the body as its last chunk does.
    if (!(size > 0)) return Buffer.concat(chunks).toString();
    if (rest.length < start + size + 2) return undefined;
    chunks.push(rest.subarray(start, start + size));
    at = start + size + 2;
  }
}
