import { setTimeout as sleep, setImmediate as yieldToEvents } from "node:timers/promises";
import type { Intent } from "./histories.ts";
import type { Random } from "./random.ts";

/** One HTTP request. Times are `performance.now()` of this process, the only clock that all posts share. */
export interface Attempt {
  sentAtMs: number;
  endedAtMs: number;
  /** If later than it ended: this process stood still meanwhile, and may have sent the last byte only after that. */
  givenUpAtMs?: number;
  end:
    | { result: "acknowledged"; eventId: string }
    /** 503, 408: by the contract, to be sent again. After 503 the event may have been queued all the same. */
    | { result: "refused" }
    /** Time-out or broken connection: likewise. */
    | { result: "unanswered" }
    /** Connection refused: nobody has seen the event. */
    | { result: "unreachable" }
    /** What no partner should ever get for a valid post. */
    | { result: "unexpected"; what: string };
}

export interface Post extends Intent {
  attempts: Attempt[];
}

export interface Load {
  /** Grows while it runs. */
  posts: Post[];
  attempts: number;
  acknowledged: number;
  /** Not acknowledged after the last attempt. */
  givenUp: number;
  /** Resolves when each post has come to its end. */
  done: Promise<void>;
}

/** After as long, an event that got no answer must not take effect any more. */
const answerTimeoutMs = 3_000;
/** On a busy machine this process stands still itself at times, for seconds. */
const tickIntervalMs = 50;
const longestTickMs = 250;
const maxAttempts = 9;
const firstBackoffMs = 200;
const longestBackoffMs = 4_000;
/** Against a service that answers nothing, the rest waits here rather than in this process's memory. */
const maxUnderWay = 5_000;

/**
 * Posts at a fixed rate, whether answers come or not, as independent partners do. Each post is a well-behaved partner's:
 * after a 5xx, a time-out or a broken connection the same body comes again, with the same key, at the other ingest.
 */
export function postHistories(options: {
  intents: Iterator<Intent, never>;
  random: Random;
  ratePerSecond: number;
  durationMs: number;
  ingestUrls: readonly string[];
  secretOf: (partner: string) => string;
  signal: AbortSignal;
}): Load {
  const { intents, random, ratePerSecond, durationMs, ingestUrls, secretOf, signal } = options;
  const underWay = new Set<Promise<void>>();
  let lastTickMs = performance.now();
  let stoodStillUntilMs = Number.NEGATIVE_INFINITY;
  const load: Load = { posts: [], attempts: 0, acknowledged: 0, givenUp: 0, done: run() };
  return load;

  async function run(): Promise<void> {
    const ticking = setInterval(noteTick, tickIntervalMs);
    const startedAtMs = performance.now();
    const count = Math.floor((durationMs / 1_000) * ratePerSecond);
    for (let index = 0; index < count && !signal.aborted; index += 1) {
      const waitMs = startedAtMs + (index * 1_000) / ratePerSecond - performance.now();
      await (waitMs > 0 ? sleep(waitMs) : yieldToEvents());
      if (underWay.size >= maxUnderWay) await Promise.race(underWay);
      const post: Post = { ...intents.next().value, attempts: [] };
      load.posts.push(post);
      const posting = keepPosting(post);
      underWay.add(posting);
      void posting.then(() => underWay.delete(posting));
    }
    await Promise.all(underWay);
    clearInterval(ticking);
  }

  function noteTick(): void {
    const nowMs = performance.now();
    if (nowMs - lastTickMs > longestTickMs) stoodStillUntilMs = nowMs;
    lastTickMs = nowMs;
  }

  async function keepPosting(post: Post): Promise<void> {
    const first = Math.floor(random.between(0, ingestUrls.length));
    for (let attempt = 0; attempt < maxAttempts && !signal.aborted; attempt += 1) {
      if (attempt > 0) {
        const backoffMs = Math.min(firstBackoffMs * 2 ** (attempt - 1), longestBackoffMs);
        await sleep(backoffMs * random.between(0.5, 1));
      }
      const url = ingestUrls[(first + attempt) % ingestUrls.length];
      const end = await postOnce(`${url}/booking-event/${post.kind}/${secretOf(post.partner)}`, post);
      if (end.result === "acknowledged") {
        load.acknowledged += 1;
        return;
      }
    }
    load.givenUp += 1;
  }

  async function postOnce(url: string, post: Post): Promise<Attempt["end"]> {
    load.attempts += 1;
    const sentAtMs = performance.now();
    const end = await request(url, post);
    noteTick();
    const endedAtMs = performance.now();
    const late = stoodStillUntilMs > sentAtMs ? { givenUpAtMs: stoodStillUntilMs + answerTimeoutMs } : {};
    post.attempts.push({ sentAtMs, endedAtMs, ...late, end });
    return end;
  }
}

async function request(url: string, { payload, asForm, idempotencyKey }: Intent): Promise<Attempt["end"]> {
  const headers = new Headers();
  if (!asForm) headers.set("Content-Type", "application/json");
  if (idempotencyKey !== null) headers.set("Idempotency-Key", idempotencyKey);
  try {
    const response = await fetch(url, {
      method: "POST",
      headers,
      body: asForm ? new URLSearchParams(payload) : JSON.stringify(payload),
      signal: AbortSignal.timeout(answerTimeoutMs),
    });
    return readAnswer(response.status, await response.text());
  } catch (error) {
    const { code } = ((error as Error).cause ?? {}) as { code?: unknown };
    return { result: code === "ECONNREFUSED" ? "unreachable" : "unanswered" };
  }
}

/** What a partner makes of an answer. */
export function readAnswer(status: number, body: string): Attempt["end"] {
  // 408: the connection was opened for a request that was given up, and timed out as this one came on it.
  if (status === 503 || status === 408) return { result: "refused" };
  const receipt = status === 200 ? /^\{"success":true,"eventId":"([0-9a-f-]{36})"\}$/.exec(body)?.[1] : undefined;
  if (receipt !== undefined) return { result: "acknowledged", eventId: receipt };
  return { result: "unexpected", what: `answer ${status} ${body.slice(0, 200)}` };
}
