import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { connect as connectPlain, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

export interface Answer {
  status: number;
  /** Names in lower case. Repeated headers are joined by ", ". */
  headers: Readonly<Record<string, string>>;
  /** Status line and headers, as sent. */
  head: string;
  body: string;
}

/** Longer than a receiver may wait for a slow body before it answers 408. */
const answerTimeoutMs = 20_000;
/** Far more than any answer to an event. */
const maxAnswerBytes = 1_048_576;

/** Why no answer arrived. The message contains nothing that was sent. */
export class NoAnswer extends Error {
  override name = "NoAnswer";
}

/**
 * Sends exactly the given bytes on a new connection and returns the answer.
 *
 * HTTP libraries would correct or refuse many of the requests that a receiver has to deal with. So Node's only reads the
 * answer, and what it would send is dropped.
 *
 * @throws NoAnswer
 */
export async function exchange(url: URL, bytes: Buffer, maxBytes = maxAnswerBytes): Promise<Answer> {
  const socket = connectTo(url);
  socket.write(bytes);
  socket.write = () => true;
  const signal = AbortSignal.timeout(answerTimeoutMs);
  const reader = request({ createConnection: () => socket, signal });
  // A receiver may answer and reset the connection before it has read everything. The answer then still counts.
  reader.on("error", () => {});
  reader.end();
  try {
    const [response] = (await once(reader, "response")) as [IncomingMessage];
    return await readAnswer(response, maxBytes);
  } catch (error) {
    throw error instanceof NoAnswer ? error : new NoAnswer(describeFault(error as NodeJS.ErrnoException, signal));
  } finally {
    socket.destroy();
  }
}

async function readAnswer(response: IncomingMessage, maxBytes: number): Promise<Answer> {
  const { httpVersion, statusCode: status = 0, statusMessage, rawHeaders, headersDistinct } = response;
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > maxBytes) throw new NoAnswer("the answer does not end");
  }
  const headers = Object.entries(headersDistinct).map(([name, values = []]) => [name, values.join(", ")]);
  return {
    status,
    headers: Object.fromEntries(headers),
    head: `HTTP/${httpVersion} ${status} ${statusMessage} ${rawHeaders.join(" ")}`,
    body: Buffer.concat(chunks).toString(),
  };
}

function describeFault({ code, message }: NodeJS.ErrnoException, signal: AbortSignal): string {
  if (signal.aborted) return `no answer within ${answerTimeoutMs / 1_000} s`;
  const isClosed = message === "socket hang up" || message === "aborted";
  return isClosed
    ? "the connection was closed without an answer"
    : `the connection failed (${code ?? "unknown error"})`;
}

function connectTo({ protocol, hostname, port }: URL): Socket {
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  if (protocol === "http:") return connectPlain({ host, port: Number(port || 80) });
  // TLS does not allow an address as the server's name.
  const servername = isIP(host) === 0 ? host : "";
  return connectTls({ host, port: Number(port || 443), servername, ALPNProtocols: ["http/1.1"] });
}
