import type { BatchAnswer, BatchEvent } from "./batch-event.ts";
import { type CallLimits, callService } from "./call-service.ts";
import { type Attempt, isRetryable, type Outcome, parseJson } from "./send-once.ts";

/** So few that a connection holds all answers, and that little is sent again after a failure. */
const eventsPerRequest = 500;
/** Long, because the service reads a batch as slowly as the rate limit demands. */
const timeoutMs = 300_000;

export interface BatchRequest extends Pick<Attempt<unknown>, "url" | "secret" | "signal" | "fetch"> {
  dryRun: boolean;
  limits: CallLimits;
}

type KeyedEvent = BatchEvent & { idempotencyKey: string };

/** @throws BookingEventsError; what the list throws */
export async function* sendBatch(
  { dryRun, limits, ...request }: BatchRequest,
  events: AsyncIterable<KeyedEvent>,
): AsyncGenerator<BatchAnswer> {
  const headers = { "Content-Type": "application/x-ndjson", ...(dryRun ? { "X-Dry-Run": "true" } : {}) };
  const ofBatch = { ...limits, attemptTimeoutMs: timeoutMs, totalTimeoutMs: timeoutMs };
  let line = 0;
  for await (const part of partsOf(events)) {
    for (let rest = part; rest.length > 0; ) {
      const body = rest.map(({ json }) => `${json}\n`).join("");
      const init = { method: "POST", headers, body };
      const answers = await callService({ ...request, init, accept: acceptLines }, ofBatch);
      for (const [index, answer] of answers.slice(0, rest.length).entries()) {
        line += 1;
        yield { ...answer, line, idempotencyKey: rest[index]?.idempotencyKey ?? "" };
      }
      rest = rest.slice(answers.length);
    }
  }
}

interface Line {
  idempotencyKey: string;
  /** Made once: every attempt must send the same bytes, even if the caller changes the payload meanwhile. */
  json: string;
}

type AnswerLine = BatchAnswer & { retryAfter?: number };

async function* partsOf(events: AsyncIterable<KeyedEvent>): AsyncGenerator<Line[]> {
  let part: Line[] = [];
  for await (const event of events) {
    part.push({ idempotencyKey: event.idempotencyKey, json: JSON.stringify(event) });
    if (part.length < eventsPerRequest) continue;
    yield part;
    part = [];
  }
  yield part;
}

/** Accepts the lines that are decided. The first one that is not ends them. */
function acceptLines(text: string): Outcome<BatchAnswer[]> | undefined {
  const lines = text.split("\n").map((line) => parseJson(line) as AnswerLine | undefined);
  const isDecided = (line: AnswerLine | undefined) => typeof line?.status === "number" && !isRetryable(line.status);
  const end = lines.findIndex((line) => !isDecided(line));
  const [first] = lines;
  if (end !== 0) return { body: lines.slice(0, end === -1 ? undefined : end) as BatchAnswer[] };
  if (first?.code === undefined) return undefined;
  const { status, code, message = "The rest cannot be stored now.", retryAfter } = first;
  const retryAfterMs = typeof retryAfter === "number" ? retryAfter * 1_000 : undefined;
  return { status, code, message, retryable: true, retryAfterMs };
}
