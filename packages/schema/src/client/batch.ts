import type { BatchAnswer, BatchEvent } from "./batch-event.ts";
import { type CallLimits, callService } from "./call-service.ts";
import { type Attempt, isRetryable, type Outcome, parseJson } from "./send-once.ts";

/** So few that a slow rate limit lets all of them through before the time-out, and little is sent again after a failure. */
const eventsPerRequest = 100;
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
      const sent = rest.length;
      const accept = (text: string) => acceptLines(text, sent);
      const answers = await callService({ ...request, init, accept }, ofBatch);
      for (const [index, answer] of answers.slice(0, sent).entries()) {
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

/**
 * Accepts the lines that are decided. The first one that is not ends them. After a 403, the answer goes on if only this
 * event is refused, and ends if the secret is no longer valid: then its event is to be sent again.
 */
function acceptLines(text: string, sent: number): Outcome<BatchAnswer[]> | undefined {
  const lines = text.split("\n").map((line) => parseJson(line) as AnswerLine | undefined);
  const isDecided = (line: AnswerLine | undefined, index: number) => {
    if (typeof line?.status !== "number" || isRetryable(line.status)) return false;
    return line.status !== 403 || lines[index + 1] !== undefined || index + 1 >= sent;
  };
  const end = lines.findIndex((line, index) => !isDecided(line, index));
  const [first] = lines;
  if (end !== 0) return { body: lines.slice(0, end === -1 ? undefined : end) as BatchAnswer[] };
  if (first?.code === undefined) return undefined;
  const { status, code, message = "The rest cannot be stored now.", retryAfter } = first;
  const retryAfterMs = typeof retryAfter === "number" ? retryAfter * 1_000 : undefined;
  return { status, code, message, retryable: true, retryAfterMs };
}
