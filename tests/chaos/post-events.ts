import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import { text } from "node:stream/consumers";
import { setTimeout as sleep, setImmediate as yieldToEvents } from "node:timers/promises";
import type { EventKind } from "@booking-events/schema";

/** An event that a partner sends, and how that went. */
export interface Post {
  partner: string;
  kind: EventKind;
  /** A consumer's begins with "consumer "; what is sent does not. */
  reference: string;
  payload: object;
  idempotencyKey: string | null;
  attempts: Attempt[];
}

export interface Outgoing extends Post {
  contentType: string;
  body: string;
}

/** One HTTP request. Times are `performance.now()` of this process, the only clock that all posts share. */
export interface Attempt {
  sentAtMs: number;
  endedAtMs: number;
  /** Later than the end if this process was frozen meanwhile: it may have sent the last byte only after that. */
  givenUpAtMs?: number;
  /** Of the answer, if there was one. */
  status?: number;
  end:
    | { result: "acknowledged"; eventId: string }
    /** 503 or 408: the contract says to send it again. After 503 the event may be in the queue nevertheless. */
    | { result: "refused" }
    /** Time-out or broken connection: it may be in the queue as well. */
    | { result: "unanswered" }
    /** Connection refused: no ingest has seen the event. */
    | { result: "unreachable" }
    /** What no partner should ever get for a valid post. */
    | { result: "unexpected"; what: string };
}

/** How a partner sends, and what it does without an answer. */
export interface SendOptions {
  answerTimeoutMs: number;
  maxAttempts: number;
  maxConnections: number;
  /** Further posts wait, so a service that answers nothing does not fill this process's memory. */
  maxUnderWay: number;
  /** It may send more than its limit allows, and then expects 429. */
  mayBeLimited: boolean;
}

const firstBackoffMs = 200;
const longestBackoffMs = 4_000;
/** Caddy closes connections that were idle for 75 s, and a request that is sent meanwhile gets no answer. */
const maxIdleMs = 30_000;
/** On a busy machine this process may itself be frozen for seconds. */
const tickIntervalMs = 50;
const longestTickMs = 250;

interface LoadOptions {
  /** The post with this index. */
  next: (index: number) => Outgoing;
  perSecond: number;
  /** How many posts. Default: until the signal aborts. */
  count?: number;
  sendOptions: SendOptions;
  ingestUrls: readonly string[];
  /** For `https:` URLs, the certificate of the authority to trust. */
  authority?: string;
  secretOf: (partner: string) => string;
  signal: AbortSignal;
  onAcknowledged?: (eventId: string) => void;
}

/**
 * Posts at a fixed rate, whether answers come or not, as independent partners do, and to each ingest in turn. After a
 * 5xx, a time-out or a broken connection the same body goes to the next ingest, with the same key.
 */
export class EventLoad {
  /** What was sent so far, and how that went. */
  readonly posts: Outgoing[] = [];
  acknowledged = 0;
  /** Resolves when each post has come to its end. */
  readonly done: Promise<void>;
  readonly #options: LoadOptions;
  readonly #agent: Agent;
  readonly #underWay = new Set<Promise<void>>();
  #lastTickMs = performance.now();
  #frozenUntilMs = Number.NEGATIVE_INFINITY;

  constructor(options: LoadOptions) {
    const { authority, sendOptions } = options;
    const agentOptions = { keepAlive: true, maxSockets: sendOptions.maxConnections, timeout: maxIdleMs };
    this.#options = options;
    this.#agent =
      authority === undefined ? new Agent(agentOptions) : new HttpsAgent({ ...agentOptions, ca: authority });
    this.done = this.#run();
  }

  async #run(): Promise<void> {
    const { next, perSecond, count = Number.POSITIVE_INFINITY, sendOptions, signal } = this.#options;
    const ticking = setInterval(() => this.#noteTick(), tickIntervalMs);
    const startedAtMs = performance.now();
    for (let index = 0; index < count; index += 1) {
      const waitMs = startedAtMs + (index * 1_000) / perSecond - performance.now();
      await (waitMs > 0 ? sleep(waitMs, undefined, { signal }).catch(() => {}) : yieldToEvents());
      if (this.#underWay.size >= sendOptions.maxUnderWay) await Promise.race(this.#underWay);
      if (signal.aborted) break;
      const post = next(index);
      this.posts.push(post);
      const posting = this.#keepPosting(post, index);
      this.#underWay.add(posting);
      void posting.then(() => this.#underWay.delete(posting));
    }
    await Promise.all(this.#underWay);
    this.#agent.destroy();
    clearInterval(ticking);
  }

  #noteTick(): void {
    const nowMs = performance.now();
    if (nowMs - this.#lastTickMs > longestTickMs) this.#frozenUntilMs = nowMs;
    this.#lastTickMs = nowMs;
  }

  async #keepPosting(post: Outgoing, index: number): Promise<void> {
    const { sendOptions, ingestUrls, secretOf, signal, onAcknowledged } = this.#options;
    for (let attempt = 0; attempt < sendOptions.maxAttempts; attempt += 1) {
      if (attempt > 0) {
        const backoffMs = Math.min(firstBackoffMs * 2 ** (attempt - 1), longestBackoffMs);
        await sleep(backoffMs * (0.5 + Math.random() / 2));
        if (signal.aborted) return;
      }
      const url = ingestUrls[(index + attempt) % ingestUrls.length];
      const end = await this.#postOnce(`${url}/booking-event/${post.kind}/${secretOf(post.partner)}`, post);
      if (end.result === "acknowledged") {
        this.acknowledged += 1;
        onAcknowledged?.(end.eventId);
        return;
      }
    }
  }

  async #postOnce(url: string, post: Outgoing): Promise<Attempt["end"]> {
    const { sendOptions } = this.#options;
    const sentAtMs = performance.now();
    const answer = await send(url, post, sendOptions, this.#agent);
    this.#noteTick();
    const endedAtMs = performance.now();
    const late =
      this.#frozenUntilMs > sentAtMs ? { givenUpAtMs: this.#frozenUntilMs + sendOptions.answerTimeoutMs } : {};
    post.attempts.push({ sentAtMs, endedAtMs, ...late, ...answer });
    return answer.end;
  }
}

/** By node:http, which costs a third of fetch and leaves more of the machine to the service. */
async function send(
  url: string,
  { contentType, body, idempotencyKey }: Outgoing,
  { answerTimeoutMs, mayBeLimited }: SendOptions,
  agent: Agent,
): Promise<Pick<Attempt, "status" | "end">> {
  const key = idempotencyKey === null ? {} : { "Idempotency-Key": idempotencyKey };
  const headers = { "Content-Type": contentType, ...key };
  try {
    const start = url.startsWith("https:") ? requestHttps : request;
    const sent = start(url, { method: "POST", agent, headers, signal: AbortSignal.timeout(answerTimeoutMs) });
    // It may also fail after the response has begun; then reading the response fails as well.
    sent.on("error", () => {});
    sent.end(body);
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    const { statusCode: status = 0 } = response;
    const answer = await text(response);
    return { status, end: status === 429 && mayBeLimited ? { result: "refused" } : readAnswer(status, answer) };
  } catch (error) {
    const isUnreachable = (error as NodeJS.ErrnoException).code === "ECONNREFUSED";
    return { end: { result: isUnreachable ? "unreachable" : "unanswered" } };
  }
}

function readAnswer(status: number, body: string): Attempt["end"] {
  // 408: the connection was opened for a request that was given up, and timed out as this one came on it.
  if (status === 503 || status === 408) return { result: "refused" };
  const receipt =
    status === 200
      ? /^\{"success":true,"eventId":"([0-9a-f-]{36})"(?:,"test":true)?(?:,"warnings":\[.*\])?\}$/.exec(body)?.[1]
      : undefined;
  if (receipt !== undefined) return { result: "acknowledged", eventId: receipt };
  return { result: "unexpected", what: `answer ${status} ${body.slice(0, 200)}` };
}
