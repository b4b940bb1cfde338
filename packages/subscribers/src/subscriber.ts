import { Agent as HttpAgent, request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { version } from "@booking-events/runtime";
import { findUrlFault } from "./find-url-fault.ts";
import { judgeAnswer, type PostOutcome } from "./judge-answer.ts";
import { createPublicLookup, type Resolve } from "./public-addresses.ts";
import { createSigner, type Signer } from "./signing-keys.ts";

export interface SubscriberOptions {
  /** Where it takes posts. */
  url: string;
  /** Of `createSigningKey`. */
  signingKey: string;
  /** Signs besides until then, while the subscriber changes to the new key. */
  previousKey?: { key: string; until: Date } | undefined;
  /** How many posts are under way at a time. */
  maxConnections: number;
  network: Network;
}

/** How this process reaches subscribers. */
export interface Network {
  /** Lets it use http and addresses that are not public. */
  allowPrivate: boolean;
  /** Every post goes through this proxy, which decides to which addresses. */
  proxyUrl?: string | undefined;
  /** Replaced by tests. */
  resolve?: Resolve;
  timeoutMs?: number;
}

/** From the look-up of the name to the answer's headers. */
const postTimeoutMs = 15_000;
/** Of the answer's body, which says nothing to us. It is read so that the connection can be used again. */
const maxAnswerBytes = 16 * 1_024;
const answerTimeoutMs = 1_000;
/** Of the answer's headers. Node refuses an answer with more. */
const maxHeaderBytes = 16 * 1_024;
/** Such as `103 Early Hints`, before the answer itself. */
const maxInterimAnswers = 16;
/** Shorter than most servers keep an idle connection. */
const idleConnectionMs = 4_000;

/** Somebody who gets posts, with its keys and its own bounded connections. */
export class Subscriber {
  readonly #url: URL;
  readonly #network: Network;
  readonly #agent: HttpAgent;
  readonly #signer: Signer;
  readonly #previous: { sign: Signer; until: Date } | undefined;

  constructor({ url, signingKey, previousKey, maxConnections, network }: SubscriberOptions) {
    this.#url = new URL(url);
    this.#network = network;
    this.#signer = createSigner(signingKey);
    this.#previous = previousKey && { sign: createSigner(previousKey.key), until: previousKey.until };
    this.#agent = createAgent(this.#url, maxConnections, network);
  }

  /**
   * Posts a body, signed by the rules of Standard Webhooks.
   *
   * @param id the same for each attempt
   * @throws the signal's reason if it aborts
   */
  async post({ id, body, signal }: { id: string; body: string; signal: AbortSignal }): Promise<PostOutcome> {
    signal.throwIfAborted();
    const fault = findUrlFault(this.#url.href, this.#network);
    if (fault !== undefined) return { kind: "failed", status: null, failure: fault };
    const limit = AbortSignal.any([signal, AbortSignal.timeout(this.#network.timeoutMs ?? postTimeoutMs)]);
    try {
      const answer = await this.#exchange(this.#headersOf(id, body), body, limit);
      await readSome(answer);
      return judgeAnswer(answer.statusCode ?? 0, answer.headers, Date.now());
    } catch (error) {
      signal.throwIfAborted();
      return { kind: "failed", status: null, failure: limit.aborted ? "timeout" : nameFailure(error) };
    }
  }

  /** Ends the connections, and with them the posts under way. */
  close(): void {
    this.#agent.destroy();
  }

  #headersOf(id: string, body: string): OutgoingHttpHeaders {
    const now = new Date();
    const timestamp = String(Math.floor(now.getTime() / 1_000));
    const text = `${id}.${timestamp}.${body}`;
    const signatures = [this.#signer(text)];
    if (this.#previous !== undefined && this.#previous.until > now) signatures.push(this.#previous.sign(text));
    return {
      "content-type": "application/cloudevents+json",
      "user-agent": `booking-events/${version}`,
      "webhook-id": id,
      "webhook-timestamp": timestamp,
      "webhook-signature": signatures.join(" "),
    };
  }

  /** @returns the answer, whose body has not been read */
  async #exchange(headers: OutgoingHttpHeaders, body: string, signal: AbortSignal): Promise<IncomingMessage> {
    for (let isRepeated = false; ; isRepeated = true) {
      const sent = this.#send(headers, body, signal);
      try {
        return await sent.answer;
      } catch (error) {
        // The server has ended a connection that was idle, at the moment at which it was used again.
        if (isRepeated || !sent.wasReused() || (error as NodeJS.ErrnoException).code !== "ECONNRESET") throw error;
      }
    }
  }

  #send(headers: OutgoingHttpHeaders, body: string, signal: AbortSignal) {
    const open = this.#url.protocol === "https:" ? httpsRequest : httpRequest;
    const options = { method: "POST", agent: this.#agent, maxHeaderSize: maxHeaderBytes };
    const request = open(this.#url, { ...options, headers, signal });
    const answer = new Promise<IncomingMessage>((resolve, reject) => {
      let interimAnswers = 0;
      request.on("information", () => {
        interimAnswers += 1;
        if (interimAnswers > maxInterimAnswers) request.destroy(new UnusableAnswerError("endless-answer"));
      });
      // Without a listener, Node keeps the connection and says nothing.
      request.on("upgrade", (_, socket) => {
        socket.destroy();
        reject(new UnusableAnswerError("http-101"));
      });
      request.on("response", resolve);
      request.on("error", reject);
      request.end(body);
    });
    return { answer, wasReused: () => request.reusedSocket };
  }
}

class UnusableAnswerError extends Error {
  readonly code: string;

  constructor(code: string) {
    super();
    this.code = code;
  }
}

function createAgent({ protocol }: URL, maxConnections: number, network: Network): HttpAgent {
  const { allowPrivate, proxyUrl, resolve } = network;
  const options = {
    keepAlive: true,
    maxSockets: maxConnections,
    maxFreeSockets: maxConnections,
    timeout: idleConnectionMs,
    rejectUnauthorized: true,
    // An empty object means no proxy, whatever the environment of the process says.
    proxyEnv: proxyUrl === undefined ? {} : { HTTP_PROXY: proxyUrl, HTTPS_PROXY: proxyUrl },
    ...(allowPrivate || proxyUrl !== undefined ? {} : { lookup: createPublicLookup(resolve) }),
  };
  return protocol === "https:" ? new HttpsAgent(options) : new HttpAgent(options);
}

/** Reads the answer to its end. If that is far or slow, ends the connection instead. */
function readSome(answer: IncomingMessage): Promise<void> {
  return new Promise((resolve) => {
    let bytes = 0;
    const timer = setTimeout(() => answer.destroy(), answerTimeoutMs);
    answer.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxAnswerBytes) answer.destroy();
    });
    answer.on("error", () => {});
    answer.on("close", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** Node's codes and OpenSSL's, and ours. Never a message: it may hold what the subscriber sent. */
function nameFailure(error: unknown): string {
  const { code, name } = error as { code?: unknown; name?: unknown };
  return typeof code === "string" ? code : String(name);
}
