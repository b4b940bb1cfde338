import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { partnersFile } from "@booking-events/harness/partners";
import type { ObservedRequest } from "@booking-events/http";
import { Connections, mayHaveBody, PartnerFacingServer, type PartnerLimiter, serverLimits } from "@booking-events/http";
import { createPartnerRegistry } from "@booking-events/partners";
import { createProducer } from "@booking-events/queue";
import { createLogger, createMetrics } from "@booking-events/runtime";
import { answers, type EventEnvelope, parseJson } from "@booking-events/schema";
import { Redis } from "ioredis";
import { expect } from "vitest";
import { type AppOptions, createApp, kindOfPath } from "../app.ts";
import { Turns } from "../load/take-turns.ts";
import { ConvertedMidnights } from "../observe/converted-midnights.ts";
import { loadPages } from "../pages/pages.ts";

export interface TestIngest {
  port: number;
  server: PartnerFacingServer;
  connections: Connections;
  /** The requests that would have been logged, in order. */
  observed: ObservedRequest[];
  /** The queued events in Redis, in order. */
  queuedEvents(): Promise<EventEnvelope[]>;
  redis: Redis;
  prefix: string;
  close(): Promise<void>;
}

/** A limiter that judges each request as told, whatever payloads cost. */
export function limiterOf(take: PartnerLimiter["take"]): AppOptions["limiter"] {
  return { take, charge() {}, count() {} };
}

/** Starts the app with the real server, a real socket and a real Redis, assembled as in `run-ingest.ts`. */
export async function startIngest(
  overrides: Partial<AppOptions> = {},
  { maxConnections = 10_000, ...limits }: Partial<typeof serverLimits & { maxConnections: number }> = {},
): Promise<TestIngest> {
  const prefix = uniquePrefix();
  const observed: ObservedRequest[] = [];
  const observe = (request: ObservedRequest) => void observed.push(request);
  const producer = createProducer({ redisServers: redisUrl(), prefix, onError: () => {} });
  const redis = new Redis(redisUrl());
  const registry = createPartnerRegistry(partnersFile);
  const connections = new Connections({ app: "ingest", maxConnections, metrics: createMetrics("test") });
  const partners = overrides.partners ?? (() => registry);
  const app = createApp({
    partners,
    ...withoutGuards(),
    markAuthentic: (socket, partner) => connections.markAuthentic(socket, partner),
    isLate: (socket) => connections.isLate(socket),
    markPaced: (response) => connections.markPaced(response),
    enqueue: (event) => producer.enqueue(event),
    pages: loadPages(),
    bodyLimitBytes: 65_536,
    trustedProxyHops: 0,
    observe,
    logger: createLogger({ name: "test", level: "silent" }),
    ...overrides,
  });
  const server = new PartnerFacingServer({
    handle: app.callback(),
    mayHaveBody: (req) => mayHaveBody(partners(), req, kindOfPath),
    connections,
    keepAliveTimeoutMs: 60_000,
    observe,
    limits: { ...serverLimits, ...limits },
  });
  server.server.listen(0, "127.0.0.1");
  await once(server.server, "listening");
  // The producer refuses events until it is connected.
  await waitFor(async () => expect(await producer.findProblems()).toEqual([]));

  return {
    port: (server.server.address() as AddressInfo).port,
    server,
    connections,
    observed,
    redis,
    prefix,
    queuedEvents: () => readQueuedEvents(redis, prefix),
    async close() {
      for (const { socket } of connections.all()) socket.destroy();
      server.server.close();
      await producer.close();
      redis.disconnect();
    },
  };
}

/** In the order of acceptance. */
export async function readQueuedEvents(redis: Redis, prefix: string): Promise<EventEnvelope[]> {
  const ids = await redis.lrange(`${prefix}:events:wait`, 0, -1);
  const jobs = await Promise.all(ids.reverse().map((id) => redis.hget(`${prefix}:events:${id}`, "data")));
  return jobs.map((data) => parseJson(data ?? "null") as EventEnvelope);
}

/** What is disabled, except in the tests of these features. */
function withoutGuards() {
  return {
    answerGuess: () => answers.invalidSecret,
    isClockWrong: () => false,
    recordUse: () => {},
    isOverloaded: () => false,
    limiter: limiterOf(async () => ({ headers: {} })),
    wasFrozen: () => false,
    observeLine: () => {},
    turns: new Turns({ isAccepting: () => false }),
    countUnknownFields: () => {},
    convertedMidnights: new ConvertedMidnights(),
    recordWarnings: () => {},
    isQueueAvailable: () => true,
    isShuttingDown: () => false,
  };
}
