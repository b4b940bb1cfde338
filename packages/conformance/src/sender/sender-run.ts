import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { setTimeout as wait } from "node:timers/promises";
import { answers, type FieldWarning, type Violation } from "@booking-events/schema";
import { type Habit, habits } from "./judge-habits.ts";
import { delaysOf, judgeScenario } from "./judge-scenario.ts";
import { type Refused, readEvent } from "./read-event.ts";
import { type Scenario, type Step, scenarios } from "./scenarios.ts";
import { type Attempt, type AttemptedEvent, SentEvents } from "./sent-events.ts";

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

export interface HabitResult {
  name: string;
  demand: string;
  /** `missing`: no event could show it. */
  outcome: "passed" | "failed" | "missing";
  seen: readonly string[];
}

/** A violation or warning, and how many requests got it. Never contains a value. */
export interface Remark {
  code: string;
  propertyPath: readonly string[];
  message: string;
  count: number;
}

export interface SenderReport {
  passed: number;
  failed: number;
  missing: number;
  /** What was wrong with requests that contained no event, and how many there were. */
  refused: readonly { status: number; message: string; count: number }[];
  /** What was wrong with refused payloads. */
  violations: readonly Remark[];
  /** What the service would warn of. */
  warnings: readonly Remark[];
  scenarios: readonly ScenarioResult[];
  habits: readonly HabitResult[];
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
  /** Their order is that of the scenarios. */
  readonly #events = new SentEvents();
  readonly #refusals = new Map<string, { status: number; message: string; count: number }>();
  readonly #violations = new Remarks();
  readonly #warnings = new Remarks();
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
    this.#firstAtMs ??= arrivedAtMs;
    const event = readEvent({ method, path: url.split("?", 1)[0] ?? "", headers, body }, this.#secret);
    if ("answer" in event) {
      this.#countRefusal(event);
      return send(response, event.answer);
    }
    for (const warning of event.warnings) this.#warnings.add(warning);
    if (/^(?:true|1|yes)$/i.test(headers["x-dry-run"]?.toString() ?? "")) {
      return send(response, answers.dryRunPassed(event.warnings));
    }
    const attempt: Attempt = { arrivedAtMs, key: event.key, type: headers["content-type"], body };
    const step = this.#nextStep(this.#events.add(event, attempt));
    this.#watchEnd(attempt, response);
    await this.#perform(step, { attempt, response, warnings: event.warnings });
  }

  /** Events after the last scenario are accepted. */
  #nextStep(event: AttemptedEvent): Step {
    const { steps } = scenarios[this.#events.all.indexOf(event)] ?? (scenarios[0] as Scenario);
    return steps[Math.min(event.attempts.length, steps.length) - 1] as Step;
  }

  #watchEnd(attempt: Attempt, response: ServerResponse): void {
    this.#lastAtMs = performance.now();
    response.once("close", () => {
      this.#lastAtMs = performance.now();
      attempt.endedAtMs ??= this.#lastAtMs;
    });
  }

  async #perform(step: Step, { attempt, response, warnings }: Exchange): Promise<void> {
    if (step === "hang") return this.#hang(attempt, response);
    // Without `ref: false`, a run that is ended early would keep the process until then.
    if (step === "accept-slowly") await wait(slowAnswerMs / this.#speed, undefined, { ref: false });
    // Before the answer is sent: the sender may have it, and count its delay, before this program is told.
    attempt.endedAtMs = performance.now();
    if (step === "disconnect") return void response.destroy();
    const answer = typeof step === "object" ? step : answers.accepted(randomUUID(), warnings);
    attempt.isDecided = answer.status < 500 && answer.status !== 408 && answer.status !== 429;
    send(response, answer);
  }

  async #hang(attempt: Attempt, response: ServerResponse): Promise<void> {
    const timer = setTimeout(() => {
      attempt.isWaitTooLong = true;
      response.destroy();
    }, longestWaitMs / this.#speed);
    await once(response, "close");
    clearTimeout(timer);
  }

  #countRefusal({ answer: { status, body }, violations }: Refused): void {
    const { message } = JSON.parse(body);
    const refusal = this.#refusals.get(message) ?? { status, message, count: 0 };
    this.#refusals.set(message, { ...refusal, count: refusal.count + 1 });
    for (const violation of violations) this.#violations.add(violation);
  }

  /** Whether the time is up, or nothing more will come. */
  isOver(timeoutMs: number): boolean {
    if (this.#firstAtMs === undefined) return false;
    const nowMs = performance.now();
    if (nowMs - this.#firstAtMs > timeoutMs) return true;
    return this.#isComplete() && nowMs - this.#lastAtMs > quietMs / this.#speed;
  }

  #isComplete(): boolean {
    return scenarios.every(({ steps }, index) => this.#attemptsOf(index).length >= steps.length);
  }

  #attemptsOf(index: number): readonly Attempt[] {
    return this.#events.all[index]?.attempts ?? [];
  }

  report(): SenderReport {
    const ofScenarios = scenarios.map((scenario, index) => judge(scenario, this.#attemptsOf(index)));
    const ofHabits = habits.map((habit) => judgeHabit(habit, this.#events.all));
    const outcomes = [...ofScenarios, ...ofHabits].map(({ outcome }) => outcome);
    const count = (outcome: ScenarioResult["outcome"]) => outcomes.filter((each) => each === outcome).length;
    return {
      passed: count("passed"),
      failed: count("failed"),
      missing: count("missing"),
      refused: [...this.#refusals.values()],
      violations: this.#violations.all(),
      warnings: this.#warnings.all(),
      scenarios: ofScenarios,
      habits: ofHabits,
    };
  }
}

interface Exchange {
  attempt: Attempt;
  response: ServerResponse;
  warnings: readonly FieldWarning[];
}

/** Counts equal remarks. */
class Remarks {
  readonly #remarks = new Map<string, Remark>();

  add({ code, propertyPath, message }: Pick<Violation, "code" | "propertyPath" | "message"> | FieldWarning): void {
    const id = JSON.stringify([code, propertyPath]);
    const { count = 0 } = this.#remarks.get(id) ?? {};
    this.#remarks.set(id, { code, propertyPath, message, count: count + 1 });
  }

  all(): Remark[] {
    return [...this.#remarks.values()];
  }
}

function judgeHabit({ name, demand, judge }: Habit, events: readonly AttemptedEvent[]): HabitResult {
  const seen = judge(events);
  const outcome = seen === undefined ? "missing" : seen.length === 0 ? "passed" : "failed";
  return { name, demand, outcome, seen: seen ?? [] };
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
