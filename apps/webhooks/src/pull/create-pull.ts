import type { IncomingMessage, ServerResponse } from "node:http";
import { needsMemory } from "@booking-events/feed";
import type { Logger } from "@booking-events/runtime";
import { listPullSubscriptions, notePlace, type PullSubscription, readFeedEnd } from "@booking-events/store";
import type { Pool } from "pg";
import { filterOf } from "../subscriptions/filter-of.ts";
import { KnownTokens } from "./know-tokens.ts";
import { type Read, RequestLimiter } from "./limit-requests.ts";
import { PlaceNotes } from "./note-places.ts";
import {
  internalError,
  invalidToken,
  noSuchPath,
  PullRefused,
  paused,
  tooManyWaiting,
  unavailable,
  wrongMethod,
} from "./pull-answers.ts";
import { type Page, readPage } from "./read-page.ts";
import { type ChangesQuery, readQuery } from "./read-query.ts";
import { SlowSubscriber, Snapshots } from "./stream-snapshot.ts";
import { FeedWatch } from "./watch-feed.ts";

export interface PullOptions {
  database: Pool;
  /** For the connection that listens. */
  databaseUrl: string;
  schema: string;
  logger: Logger;
  observe: (request: { path: PullPath | "other"; status: number; durationMs: number }) => void;
  isStopping: () => boolean;
}

type PullPath = "changes" | "snapshot";

export interface Pull {
  answer: (request: IncomingMessage, response: ServerResponse) => void;
  /** Called when a subscription may have changed. */
  forgetTokens: () => void;
  close: () => Promise<void>;
}

/** Of all subscriptions. */
const maxWaiting = 1_000;
/** How soon those who wait are answered when the process stops. */
const stopCheckMs = 500;

/** Answers subscribers that pull: `GET /changes` and `GET /changes/snapshot`. */
export function createPull(options: PullOptions): Pull {
  const services = createServices(options);
  return {
    answer: (request, response) => void answerRequest(request, response, services),
    forgetTokens: () => services.tokens.forget(),
    async close() {
      services.feed.close();
      await services.places.close();
    },
  };
}

type Services = ReturnType<typeof createServices>;

function createServices(options: PullOptions) {
  const { database } = options;
  const tokens = new KnownTokens(() => listPullSubscriptions(database));
  const feed = new FeedWatch({ ...options, readEnd: () => readFeedEnd(database) });
  const places = new PlaceNotes((name, lastId) => notePlace(database, name, lastId));
  return { ...options, tokens, feed, places, limiter: new RequestLimiter(), snapshots: new Snapshots(options) };
}

async function answerRequest(request: IncomingMessage, response: ServerResponse, services: Services): Promise<void> {
  const startedAtMs = performance.now();
  const { pathname, searchParams } = readUrl(request);
  const path = pathOf(pathname);
  const { shouldKeepAlive } = response;
  // A request without a valid token closes its connection, so each further guess costs its sender a new one.
  response.shouldKeepAlive = false;
  try {
    if (path === undefined) throw new PullRefused(noSuchPath);
    if (request.method !== "GET") throw new PullRefused(wrongMethod);
    if (services.isStopping()) throw new PullRefused(unavailable);
    const { name } = await authenticate(request, services);
    // A body is not read, so what follows it can't be, either.
    response.shouldKeepAlive = shouldKeepAlive && !hasBody(request);
    await services.limiter.admit(name, async (read) => {
      if (path === "snapshot") await answerSnapshot(request, response, services);
      else {
        const question = { request, query: readQuery(searchParams), read, isGone: goneSignal(response) };
        sendPage(response, await answerChanges(question, services), services);
      }
      // Until then, what the subscriber has not read takes memory.
      if (!response.closed) await new Promise((resolve) => response.once("close", resolve));
    });
  } catch (error) {
    refuse(response, error, services);
  } finally {
    services.observe({
      path: path ?? "other",
      status: response.statusCode,
      durationMs: performance.now() - startedAtMs,
    });
  }
}

interface Question {
  request: IncomingMessage;
  query: ChangesQuery;
  read: Read;
  /** The subscriber has hung up. */
  isGone: AbortSignal;
}

/** Reads a page. While there is nothing for the subscriber, waits for changes until the time is over. */
async function answerChanges({ request, query, read, isGone }: Question, services: Services): Promise<Page> {
  const { feed, places, isStopping } = services;
  const giveUpAtMs = performance.now() + query.waitMs;
  for (let { after } = query; ; ) {
    // Again after each wait: meanwhile, the token may have been revoked.
    const subscription = await authenticate(request, services);
    // With a filter, what was pulled is remembered with the reader, so there must be one.
    const now = needsMemory(filterOf(subscription));
    await orUnavailable(places.note(subscription.name, query.after, { now }), services);
    const page = await orUnavailable(
      read(() => readPage(services, subscription, { after, limit: query.limit })),
      services,
    );
    after = page.last;
    const isOver = () => isGone.aborted || isStopping() || performance.now() >= giveUpAtMs;
    if (page.changes.length > 0 || isOver()) return page;
    if (feed.waiting >= maxWaiting) throw new PullRefused(tooManyWaiting);
    while (!isOver() && feed.end <= after) {
      await feed.wait(after, Math.min(giveUpAtMs - performance.now(), stopCheckMs), isGone);
    }
  }
}

async function answerSnapshot(request: IncomingMessage, response: ServerResponse, services: Services): Promise<void> {
  const subscription = await authenticate(request, services);
  await orUnavailable(services.snapshots.stream(subscription, response), services);
}

/** @throws PullRefused */
async function authenticate({ headers }: IncomingMessage, services: Services): Promise<PullSubscription> {
  const [, token = ""] = /^Bearer +(\S+)$/i.exec(headers.authorization ?? "") ?? [];
  const subscription = await orUnavailable(services.tokens.find(token), services);
  if (subscription === undefined) throw new PullRefused(invalidToken);
  if (subscription.pausedAt !== null) throw new PullRefused(subscription.resumesSoon ? unavailable : paused);
  return subscription;
}

/** Whatever PostgreSQL can't do now, the subscriber may ask again later. */
async function orUnavailable<Result>(reading: Promise<Result>, { logger }: Services): Promise<Result> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof PullRefused || error instanceof SlowSubscriber) throw error;
    logger.warn({ err: error }, "changes could not be read for a subscriber that pulls");
    throw new PullRefused(unavailable, { cause: error });
  }
}

function refuse(response: ServerResponse, error: unknown, services: Services): void {
  // A snapshot that is cut off must not look like a whole one.
  if (response.headersSent) {
    response.destroy();
    return;
  }
  if (!(error instanceof PullRefused)) services.logger.error({ err: error }, "a request of a subscriber failed");
  const { status, code, message, headers } = error instanceof PullRefused ? error.answer : internalError;
  send(response, { status, body: JSON.stringify({ message, code }), headers }, services);
}

/** The changes are JSON already. */
function sendPage(response: ServerResponse, { changes, last }: Page, services: Services): void {
  send(response, { status: 200, body: `{"changes":[${changes.join(",")}],"last":${last}}` }, services);
}

/** An erasure changes earlier pages, so nobody may keep an answer. */
function send(
  response: ServerResponse,
  { status, body, headers = {} }: { status: number; body: string; headers?: Record<string, string> | undefined },
  { isStopping }: Services,
): void {
  // A stop waits for all connections.
  if (isStopping()) response.shouldKeepAlive = false;
  response.writeHead(status, {
    "Content-Type": "application/json; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Length": Buffer.byteLength(body),
    ...headers,
  });
  response.end(body);
}

function goneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  // A subscriber may have hung up while it was being authenticated.
  if (response.closed) gone.abort();
  else response.once("close", () => gone.abort());
  return gone.signal;
}

/** Node accepts targets that are no paths. */
function readUrl({ url = "/" }: IncomingMessage): { pathname: string; searchParams: URLSearchParams } {
  const [pathname = "", query = ""] = url.split("?", 2);
  return { pathname, searchParams: new URLSearchParams(query) };
}

function pathOf(pathname: string): PullPath | undefined {
  if (pathname === "/changes") return "changes";
  return pathname === "/changes/snapshot" ? "snapshot" : undefined;
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}
