import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { setTimeout as wait } from "node:timers/promises";
import { answers } from "@booking-events/schema";
import { type Attempt, delaysOf, judgeScenario } from "./judge-scenario.ts";
import { readEvent } from "./read-event.ts";
import { type Scenario, type Step, scenarios } from "./scenarios.ts";

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

/** For a sender with a time-out of 10 s or more, as the contract recommends. */
const slowAnswerMs = 8_000;
/** How long the receiver keeps a connection without an answer. */
const longestWaitMs = 30_000;
/** How long nothing may arrive before the receiver believes that nothing more will. */
const quietMs = 8_000;

/** What a sender does in one run: each new event gets the next scenario. */
export class SenderRun {
  readonly #secret: string;
  readonly #speed: number;
  /** By the event's id, in the order of their first attempts, which is that of the scenarios. */
  readonly #events = new Map<string, Attempt[]>();
  readonly #refusals = new Map<string, { status: number; message: string; count: number }>();
  #firstAtMs: number | undefined;
  #lastAtMs = 0;

  /** @param speed divides the times that this program waits */
  constructor(secret: string, speed: number) {
    this.#secret = secret;
    this.#speed = speed;
  }

  async receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const arrivedAtMs = performance.now();
    const { method = "", url = "", headers } = request;
    const body = await buffer(request).catch(() => undefined);
    // The sender has given up before its request was complete.
    if (body === undefined) return;
    const event = readEvent({ method, path: url.split("?", 1)[0] ?? "", headers, body }, this.#secret);
    if ("status" in event) {
      this.#countRefusal(event.status, JSON.parse(event.body).message);
      send(response, event);
    } else if (headers["x-dry-run"] === "true") {
      send(response, answers.dryRunPassed());
    } else {
      this.#firstAtMs ??= arrivedAtMs;
      const key = (headers["idempotency-key"] ?? headers["webhook-id"])?.toString();
      const attempt: Attempt = { arrivedAtMs, kind: event.kind, key, type: headers["content-type"], body };
      const step = this.#nextStep(event.id, attempt);
      this.#watchEnd(attempt, response);
      await this.#perform(step, attempt, response);
    }
  }

  /** Events after the last scenario are accepted. */
  #nextStep(id: string, attempt: Attempt): Step {
    const attempts = this.#events.get(id) ?? [];
    this.#events.set(id, attempts);
    attempts.push(attempt);
    const index = [...this.#events.keys()].indexOf(id);
    const { steps } = scenarios[index] ?? (scenarios[0] as Scenario);
    return steps[Math.min(attempts.length, steps.length) - 1] as Step;
  }

  #watchEnd(attempt: Attempt, response: ServerResponse): void {
    this.#lastAtMs = performance.now();
    response.once("close", () => {
      this.#lastAtMs = performance.now();
      attempt.endedAtMs ??= this.#lastAtMs;
    });
  }

  async #perform(step: Step, attempt: Attempt, response: ServerResponse): Promise<void> {
    if (step === "hang") return this.#hang(attempt, response);
    // Without `ref: false`, a run that is ended early would keep the process until then.
    if (step === "accept-slowly") await wait(slowAnswerMs / this.#speed, undefined, { ref: false });
    // Before the answer is sent: the sender may have it, and count its delay, before this program is told.
    attempt.endedAtMs = performance.now();
    if (step === "disconnect") response.destroy();
    else send(response, typeof step === "object" ? step : answers.accepted(randomUUID()));
  }

  async #hang(attempt: Attempt, response: ServerResponse): Promise<void> {
    const timer = setTimeout(() => {
      attempt.isWaitTooLong = true;
      response.destroy();
    }, longestWaitMs / this.#speed);
    await once(response, "close");
    clearTimeout(timer);
  }

  #countRefusal(status: number, message: string): void {
    const refusal = this.#refusals.get(message) ?? { status, message, count: 0 };
    this.#refusals.set(message, { ...refusal, count: refusal.count + 1 });
  }

  /** Whether the time is up, or nothing more will come. */
  isOver(timeoutMs: number): boolean {
    if (this.#firstAtMs === undefined) return false;
    const nowMs = performance.now();
    if (nowMs - this.#firstAtMs > timeoutMs) return true;
    return this.#isComplete() && nowMs - this.#lastAtMs > quietMs / this.#speed;
  }

  #isComplete(): boolean {
    const attempts = [...this.#events.values()];
    return scenarios.every(({ steps }, index) => (attempts[index]?.length ?? 0) >= steps.length);
  }

  report(): SenderReport {
    const attempts = [...this.#events.values()];
    const results = scenarios.map((scenario, index) => judge(scenario, attempts[index] ?? []));
    const count = (outcome: ScenarioResult["outcome"]) => results.filter((each) => each.outcome === outcome).length;
    return {
      passed: count("passed"),
      failed: count("failed"),
      missing: count("missing"),
      refused: [...this.#refusals.values()],
      scenarios: results,
    };
  }
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
