/** A request before it is turned into bytes. What is left out is that of an ordinary event. */
export interface Request {
  /** Default: the address for events. */
  to?: "events" | "questions";
  method?: string;
  operation?: "create" | "update" | "delete";
  /** Replaces the operation and the secret. It may contain {@link secretPlaceholder}. */
  path?: string;
  /** Replaces the secret, as it is written in the path. */
  secret?: string;
  /** Default: JSON, if there is a body. `null` sends no Content-Type. */
  type?: string | null;
  /** Added to the headers that every request has. They may contain {@link secretPlaceholder}. */
  headers?: readonly string[];
  /** Default: none. Without a body there is no Content-Length. */
  body?: string | Buffer;
  framing?: "length" | "chunked" | { announced: number };
  /** Host headers to send. Default: one, that of the receiver's URL. */
  hosts?: number;
  dryRun?: boolean;
}

export const secretPlaceholder = "{secret}";

export function toBytes(request: Request, { url, secret }: { url: URL; secret: string }): Buffer {
  const {
    method = "POST",
    operation = "create",
    type = "application/json",
    headers = [],
    framing = "length",
  } = request;
  const { body, hosts = 1, dryRun = false } = request;
  const ownPath = `/booking-event/${operation}/${request.secret ?? secretPlaceholder}`;
  const path = url.pathname.replace(/\/+$/, "") + (request.path ?? ownPath);
  const content = Buffer.from(body ?? "");
  const lines = [
    `${method} ${path.replaceAll(secretPlaceholder, () => encodeURIComponent(secret))} HTTP/1.1`,
    ...Array.from({ length: hosts }, () => `Host: ${url.host}`),
    ...(body === undefined || type === null ? [] : [`Content-Type: ${type}`]),
    ...(body === undefined ? [] : [framingHeader(framing, content.length)]),
    ...(dryRun && !headers.some((header) => /^X-Dry-Run:/i.test(header)) ? ["X-Dry-Run: true"] : []),
    ...headers.map((header) => header.replaceAll(secretPlaceholder, () => secret)),
    "Connection: close",
  ];
  const framed = framing === "chunked" ? toChunk(content) : content;
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), framed]);
}

function framingHeader(framing: NonNullable<Request["framing"]>, bytes: number): string {
  if (framing === "chunked") return "Transfer-Encoding: chunked";
  return `Content-Length: ${framing === "length" ? bytes : framing.announced}`;
}

function toChunk(content: Buffer): Buffer {
  const last = Buffer.from("0\r\n\r\n");
  if (content.length === 0) return last;
  return Buffer.concat([Buffer.from(`${content.length.toString(16)}\r\n`), content, Buffer.from("\r\n"), last]);
}
