import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { setTimeout as wait } from "node:timers/promises";
import { answers } from "@booking-events/schema";
import { type Attempt, delaysOf, judgeScenario } from "./judge-scenario.ts";
import { readEvent, type SentEvent } from "./read-event.ts";
import { type Scenario, type Step, scenarios } from "./scenarios.ts";

export interface PlayReceiverOptions {
  port: number;
  /** Default: 127.0.0.1. */
  host?: string;
  /** Default: a random one. */
  secret?: string;
  /** Divides the times that this program waits. Default: 1. */
  speed?: number;
  /** How long a run may take from the first event on. Default: 60,000 ms. */
  timeoutMs?: number;
  /** Ends the run. */
  signal?: AbortSignal;
}

export interface ScenarioResult {
  name: string;
  demand: string;
  /** `missing`: too few events were sent. */
  outcome: "passed" | "failed" | "missing";
  /** What the sender did instead of what is demanded. */
  seen: readonly string[];
  attempts: number;
  /** From the end of each attempt to the next one, in milliseconds. */
  delaysMs: readonly number[];
}

export interface SenderReport {
  passed: number;
  failed: number;
  missing: number;
  /** What was wrong with requests that contained no event, and how many there were. */
  refused: readonly { status: number; message: string; count: number }[];
  scenarios: readonly ScenarioResult[];
}

export interface PlayedReceiver {
  url: string;
  secret: string;
  /** Resolves when the run has ended. */
  report: Promise<SenderReport>;
}

/** For a sender with a time-out of 10 s or more, as the contract recommends. */
const slowAnswerMs = 8_000;
/** How long the receiver keeps a connection without an answer. */
const longestWaitMs = 30_000;
/** How long nothing may arrive before the receiver believes that nothing more will. */
const quietMs = 8_000;
const checkIntervalMs = 50;

/** Plays a receiver with faults: each new event gets the next scenario. */
export async function playReceiver(options: PlayReceiverOptions): Promise<PlayedReceiver> {
  const { port, host = "127.0.0.1", timeoutMs = 60_000, signal } = options;
  const { secret = `conformance-${randomBytes(8).toString("hex")}`, speed = 1 } = options;
  const run = createRun(secret, speed);
  const server = createServer((request, response) => void run.receive(request, response));
  server.listen(port, host);
  await once(server, "listening");

  async function awaitReport(): Promise<SenderReport> {
    while (!signal?.aborted && !run.isOver(timeoutMs)) await wait(checkIntervalMs);
    await close(server);
    return run.report();
  }
  const { port: ownPort } = server.address() as AddressInfo;
  return { url: `http://${host.includes(":") ? `[${host}]` : host}:${ownPort}`, secret, report: awaitReport() };
}

async function close(server: Server): Promise<void> {
  server.close();
  server.closeAllConnections();
  await once(server, "close");
}

function createRun(secret: string, speed: number) {
  /** By the event's id, in the order of their first attempts, which is that of the scenarios. */
  const events = new Map<string, Attempt[]>();
  const refusals = new Map<string, { status: number; message: string; count: number }>();
  let firstAtMs: number | undefined;
  let lastAtMs = 0;

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const arrivedAtMs = performance.now();
    const { method = "", url = "", headers } = request;
    const body = await buffer(request).catch(() => undefined);
    // The sender has given up before its request was complete.
    if (body === undefined) return;
    const event = readEvent({ method, path: url.split("?", 1)[0] ?? "", headers, body }, secret);
    if ("status" in event) {
      countRefusal(event.status, JSON.parse(event.body).message);
      send(response, event);
    } else if (headers["x-dry-run"] === "true") {
      send(response, answers.dryRunPassed());
    } else {
      firstAtMs ??= arrivedAtMs;
      const key = (headers["idempotency-key"] ?? headers["webhook-id"])?.toString();
      await play(event, { arrivedAtMs, kind: event.kind, key, type: headers["content-type"], body }, response);
    }
  }

  async function play({ id }: SentEvent, attempt: Attempt, response: ServerResponse): Promise<void> {
    const attempts = events.get(id) ?? [];
    events.set(id, attempts);
    attempts.push(attempt);
    lastAtMs = performance.now();
    response.once("close", () => {
      lastAtMs = performance.now();
      attempt.endedAtMs ??= lastAtMs;
    });
    const { steps } = scenarioOf(id);
    const step = steps[Math.min(attempts.length, steps.length) - 1] as Step;
    if (step === "hang") await hang(attempt, response);
    else await perform(step, attempt, response);
  }

  async function hang(attempt: Attempt, response: ServerResponse): Promise<void> {
    const timer = setTimeout(() => {
      attempt.isWaitTooLong = true;
      response.destroy();
    }, longestWaitMs / speed);
    await once(response, "close");
    clearTimeout(timer);
  }

  async function perform(step: Exclude<Step, "hang">, attempt: Attempt, response: ServerResponse): Promise<void> {
    // Without `ref: false`, a run that is ended early would keep the process until then.
    if (step === "accept-slowly") await wait(slowAnswerMs / speed, undefined, { ref: false });
    // Before the answer is sent: the sender may have it, and count its delay, before this program is told.
    attempt.endedAtMs = performance.now();
    if (step === "disconnect") response.destroy();
    else send(response, typeof step === "object" ? step : answers.accepted(randomUUID()));
  }

  /** Events after the last scenario are accepted. */
  function scenarioOf(id: string): Scenario {
    const index = [...events.keys()].indexOf(id);
    return scenarios[index] ?? (scenarios[0] as Scenario);
  }

  function countRefusal(status: number, message: string): void {
    const refusal = refusals.get(message) ?? { status, message, count: 0 };
    refusals.set(message, { ...refusal, count: refusal.count + 1 });
  }

  function isComplete(): boolean {
    const attempts = [...events.values()];
    return scenarios.every(({ steps }, index) => (attempts[index]?.length ?? 0) >= steps.length);
  }

  return {
    receive,
    isOver(timeoutMs: number): boolean {
      if (firstAtMs === undefined) return false;
      const nowMs = performance.now();
      return nowMs - firstAtMs > timeoutMs || (isComplete() && nowMs - lastAtMs > quietMs / speed);
    },
    report(): SenderReport {
      const attempts = [...events.values()];
      const results = scenarios.map((scenario, index) => judge(scenario, attempts[index] ?? []));
      const count = (outcome: ScenarioResult["outcome"]) => results.filter((each) => each.outcome === outcome).length;
      return {
        ...{ passed: count("passed"), failed: count("failed"), missing: count("missing") },
        refused: [...refusals.values()],
        scenarios: results,
      };
    },
  };
}

function judge(scenario: Scenario, attempts: readonly Attempt[]): ScenarioResult {
  const { name, demand } = scenario;
  const seen = attempts.length === 0 ? [] : judgeScenario(scenario, attempts);
  const outcome = attempts.length === 0 ? "missing" : seen.length === 0 ? "passed" : "failed";
  return { name, demand, outcome, seen, attempts: attempts.length, delaysMs: delaysOf(attempts) };
}

function send(response: ServerResponse, { status, body, headers }: { status: number; body: string; headers?: object }) {
  response.writeHead(status, { "Content-Type": "application/json", ...headers }).end(body);
}
