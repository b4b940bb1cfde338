import { connect as connectPlain, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { type Answer, parseAnswer } from "./parse-answer.ts";

/** Longer than a receiver may wait for a slow body before it answers 408. */
const answerTimeoutMs = 20_000;
/** Far more than any answer of the contract. */
const maxAnswerBytes = 1_048_576;

/** Why no answer arrived. The message contains nothing that was sent. */
export class NoAnswer extends Error {
  override name = "NoAnswer";
}

/**
 * Sends exactly the given bytes on a new connection and returns the answer.
 *
 * HTTP libraries would correct or refuse many of the requests that a receiver has to deal with.
 *
 * @throws NoAnswer
 */
export function exchange(url: URL, request: Buffer): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const socket = connectTo(url);
    let received = Buffer.alloc(0);
    const close = () => {
      clearTimeout(timer);
      socket.destroy();
    };
    const fail = (reason: string) => {
      close();
      reject(new NoAnswer(reason));
    };
    const tryToParse = (isClosed: boolean) => {
      const answer = parseAnswer(received, isClosed);
      if (answer === undefined) return false;
      close();
      resolve(answer);
      return true;
    };
    const timer = setTimeout(() => fail(`no answer within ${answerTimeoutMs / 1_000} s`), answerTimeoutMs);
    socket.on("data", (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      if (!tryToParse(false) && received.length > maxAnswerBytes) fail("the answer does not end");
    });
    // A receiver may answer and reset the connection before it has read everything. The answer then still counts.
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (!tryToParse(true)) fail(`the connection failed (${error.code ?? "unknown error"})`);
    });
    socket.on("end", () => {
      if (!tryToParse(true)) fail("the connection was closed without an answer");
    });
    socket.write(request);
  });
}

function connectTo({ protocol, hostname, port }: URL): Socket {
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  if (protocol === "http:") return connectPlain({ host, port: Number(port || 80) });
  // TLS does not allow an address as the server's name.
  const servername = isIP(host) === 0 ? host : "";
  return connectTls({ host, port: Number(port || 443), servername, ALPNProtocols: ["http/1.1"] });
}
