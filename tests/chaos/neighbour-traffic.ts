import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type { EventKind } from "@booking-events/schema";
import type { Post } from "./check.ts";
import { type Attempt, readAnswer } from "./post-histories.ts";
import { createRandom } from "./random.ts";

export interface Draft {
  kind: EventKind;
  reference: string;
  content: Content;
}

/** A payload without its reference. */
interface Content {
  payload: object;
  /** Its JSON after the opening brace. */
  rest: string;
}

/** What one partner sends. */
export interface Traffic {
  partner: string;
  perSecond: number;
  posts: Post[];
  /** How often each status came; "none": no answer. */
  statuses: Map<string, number>;
  /** Resolves when it has been told to stop and each request has come to its end. */
  done: Promise<void>;
}

const answerTimeoutMs = 10_000;
const maxConnections = 64;
/** Beyond these, requests wait here: a service that answers nothing must not fill this process's memory. */
const maxUnderWay = 1_000;

/**
 * Posts at an even rate until the signal aborts, to all ingests in turn and whether answers come or not. Nothing is sent
 * a second time: what is not accepted at once counts as such.
 *
 * @param options.invent makes the event with this index
 * @param options.onAnswer told of each answer, or that there was none
 */
export function startTraffic(options: {
  partner: string;
  perSecond: number;
  invent: (index: number) => Draft;
  ingestUrls: readonly string[];
  secret: string;
  signal: AbortSignal;
  onAnswer?: (attempt: Attempt, status: string) => void;
}): Traffic {
  const { partner, perSecond, invent, ingestUrls, secret, signal, onAnswer } = options;
  const agent = new Agent({ keepAlive: true, maxSockets: maxConnections });
  const underWay = new Set<Promise<void>>();
  const traffic: Traffic = { partner, perSecond, posts: [], statuses: new Map(), done: run() };
  return traffic;

  async function run(): Promise<void> {
    const startedAtMs = performance.now();
    for (let index = 0; ; index += 1) {
      const waitMs = startedAtMs + (index * 1_000) / perSecond - performance.now();
      if (waitMs > 0) await sleep(waitMs, undefined, { signal }).catch(() => {});
      if (underWay.size >= maxUnderWay) await Promise.race(underWay);
      if (signal.aborted) break;
      const posting = post(invent(index), `${ingestUrls[index % ingestUrls.length]}/booking-event`);
      underWay.add(posting);
      void posting.then(() => underWay.delete(posting));
    }
    await Promise.all(underWay);
    agent.destroy();
  }

  async function post({ kind, reference, content }: Draft, url: string): Promise<void> {
    const sentAtMs = performance.now();
    const body = `{"consumerTripPartnerExternalReference":${JSON.stringify(reference)},${content.rest}`;
    const { end, status } = await send(`${url}/${kind}/${secret}`, body, agent);
    const attempt = { sentAtMs, endedAtMs: performance.now(), end };
    traffic.statuses.set(status, (traffic.statuses.get(status) ?? 0) + 1);
    traffic.posts.push({
      ...{ partner, kind, reference, idempotencyKey: null, attempts: [attempt] },
      // Made when asked for: ten thousand of 64 KB do not fit into memory.
      get payload() {
        return { consumerTripPartnerExternalReference: reference, ...content.payload };
      },
    } as Post);
    onAnswer?.(attempt, status);
  }
}

async function send(url: string, body: string, agent: Agent): Promise<{ end: Attempt["end"]; status: string }> {
  try {
    const sent = request(url, {
      ...{ method: "POST", agent, signal: AbortSignal.timeout(answerTimeoutMs) },
      headers: { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) },
    });
    sent.end(body);
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    const { statusCode = 0 } = response;
    const answer = await text(response);
    // To be over the limit is the partner's own doing.
    const end: Attempt["end"] = statusCode === 429 ? { result: "refused" } : readAnswer(statusCode, answer);
    return { end, status: String(statusCode) };
  } catch {
    return { end: { result: "unanswered" }, status: "none" };
  }
}

/** For ever new bookings, now and then updated. */
export function inventOrdinary(index: number): Draft {
  const kind = index % 2 === 0 ? "create" : "update";
  return { kind, reference: `TRIP-${index >> 1}`, content: ordinaryContent(index) };
}

/** All of one booking. */
export function inventHot(index: number): Draft {
  const kinds = ["create", "update", "update", "delete"] as const;
  return { kind: kinds[index % kinds.length] ?? "update", reference: "HOT", content: ordinaryContent(index) };
}

/** All of one booking, which is never deleted: somebody locks its row. */
export function inventLocked(index: number): Draft {
  return { kind: index === 0 ? "create" : "update", reference: lockedReference, content: ordinaryContent(index) };
}

export const lockedReference = "LOCKED";
const hotBookings = 4;

/** The worst payloads in turn, each for a new booking and for a hot one. */
export function inventWorst(index: number): Draft {
  const round = Math.floor(index / worstContents.length);
  const content = worstContents[index % worstContents.length] ?? ordinaryContent(index);
  return round % 2 === 0
    ? { kind: "create", reference: `NEW-${index}`, content }
    : { kind: round % 4 === 1 ? "update" : "create", reference: `HOT-${(round >> 1) % hotBookings}`, content };
}

function ordinaryContent(index: number): Content {
  return toContent({
    consumerGivenName: "Ana",
    consumerTripArrivalDate: "2026-06-14",
    consumerTripVenueName: "Harbour Hall",
    note: `the event with the number ${index}`,
  });
}

/** A little less than ingest's limit of 64 KiB, with room for the reference. */
const largestBytes = 65_000;
/** Ingest's limit of 2,000 JSON values, without the payload itself, its reference and the field that holds the others. */
const mostValues = 1_997;
const deepestLevels = 16;

const worstContents: readonly Content[] = [
  { text: mixedText(largestBytes / 2 - 50) },
  { list: Array.from({ length: mostValues }, () => ({})) },
  // The payload and the list are two levels.
  { deep: Array.from({ length: Math.floor(mostValues / (deepestLevels - 2)) }, () => nest(deepestLevels - 2)) },
  Object.fromEntries(
    Array.from({ length: mostValues }, (_, at) => [`field-with-a-long-name-${String(at).padStart(4, "0")}`, 1]),
  ),
].map(toContent);

/** Of characters that take two bytes in UTF-8 and in V8, in an order that PostgreSQL can hardly compress. */
function mixedText(length: number): string {
  const random = createRandom(1, "text");
  return Array.from({ length }, () => String.fromCodePoint(Math.floor(random.between(0x100, 0x600)))).join("");
}

function nest(levels: number): unknown[] {
  return levels === 1 ? [] : [nest(levels - 1)];
}

function toContent(payload: object): Content {
  return { payload, rest: JSON.stringify(payload).slice(1) };
}
