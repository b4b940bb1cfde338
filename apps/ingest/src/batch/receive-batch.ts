import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { setImmediate as nextTurn, setTimeout as wait } from "node:timers/promises";
import {
  type AdmissionOptions,
  admitPartner,
  ClientGone,
  createRequestId,
  expectsContinue,
  findPartner,
  type Line,
  LineSplitter,
  type ObserveRequest,
  Pace,
  type PartnerLimiter,
  Refusal,
  type RequestState,
  readChunks,
  requestIdOf,
  requireNdjson,
  takeBytesRead,
  tokenBytes,
} from "@booking-events/http";
import type { Partner } from "@booking-events/partners";
import type { Producer } from "@booking-events/queue";
import { type Answer, answers, countJsonValues, toBatchLine } from "@booking-events/schema";
import type { RouterContext } from "@koa/router";
import { readDryRun } from "../body/event-options.ts";
import { type JudgedEvent, type JudgingOptions, judgeEvent, listCodes } from "../events/judge-event.ts";
import type { Turns } from "../load/take-turns.ts";
import type { RecordWarnings } from "../observe/record-warnings.ts";
import { AnswerWriter } from "./answer-writer.ts";
import { BatchesUnderWay } from "./batches-under-way.ts";
import { readLine } from "./read-line.ts";

export const batchLimits = {
  /** Lines that are queued together. Their events are in Redis before the next ones are sent there. */
  linesTogether: 50,
  /** For lines in one turn of the event loop; the last one may exceed it. Others' events come in between. */
  sliceMs: 1,
  /** How often a batch that has to wait looks whether it still must. */
  pauseMs: 100,
  /** Of the tokens in a partner's bucket, left for its events outside of the batch. */
  reservedShare: 0.25,
};

export interface BatchOptions extends AdmissionOptions, JudgingOptions {
  limiter: Pick<PartnerLimiter, "take" | "charge" | "count">;
  /**
   * Says that the request has a pace of its own, so no other limit of time applies until the returned function is called.
   */
  markPaced: (response: ServerResponse) => () => void;
  /** True if this process was frozen, so that the sender may have given up and sent newer events. */
  wasFrozen: (socket: Socket) => boolean;
  turns: Pick<Turns, "take">;
  enqueue: Producer["enqueue"];
  recordWarnings: RecordWarnings;
  /** False if Redis is known to be down, or unable to store events safely. */
  isQueueAvailable: () => boolean;
  bodyLimitBytes: number;
  /** Called for each line as for the request that its event would have been. */
  observeLine: ObserveRequest;
}

export interface BatchState extends RequestState {
  /** How many lines got each status. */
  lines?: Record<string, number>;
  /** Why the answer ended before the body did. */
  endedBy?: string;
}

type Context = RouterContext<BatchState>;

/** Receives many events in one request. The answer begins with the first line, not when the body has ended. */
export function receiveBatches(options: BatchOptions): (ctx: Context) => Promise<void> {
  const batches = new BatchesUnderWay();
  return async function receiveBatch(ctx) {
    // Its lines pay for it.
    ctx.res.once("close", () => takeBytesRead(ctx.req.socket));
    const { partner } = await admitPartner(ctx, null, options);
    if (partner.held) throw new Refusal(answers.partnerHeld);
    requireNdjson(ctx.req);
    const isDryRun = readDryRun(ctx.req.headers["x-dry-run"]?.toString());
    const end = batches.begin(partner.id, ctx.res);
    const limitTime = options.markPaced(ctx.res);
    if (expectsContinue(ctx.req)) ctx.res.writeContinue();
    ctx.state.answer = {
      status: 200,
      code: "batch",
      headers: { "Content-Type": "application/x-ndjson" },
      async stream(response) {
        try {
          await new Batch(ctx, { partner, isDryRun, response }, options).run();
        } finally {
          limitTime();
          // The sender may begin the next one as soon as it has the last line.
          end();
        }
      },
    };
  };
}

/** A judged event, or the answer that refuses it. */
type Verdict = JudgedEvent | Refusal;

/**
 * One batch, from its first line to the last. Lines are judged in slices, queued some at a time, and answered in order.
 * The next ones are not queued before: if Redis took them and not the ones before, a retry would be ordered after them.
 */
class Batch {
  readonly #ctx: Context;
  readonly #isDryRun: boolean;
  readonly #options: BatchOptions;
  readonly #response: ServerResponse;
  readonly #writer: AnswerWriter;
  readonly #splitter: LineSplitter;
  readonly #stopping = new AbortController();
  readonly #counts: Record<string, number> = {};
  #partner: Partner;
  /** The first line without an answer. */
  #next = 1;
  readonly #bytesBefore: number;
  #bodyBytes = 0;
  #lineBytes = 0;
  #paidBytes = 0;

  constructor(
    ctx: Context,
    { partner, isDryRun, response }: { partner: Partner; isDryRun: boolean; response: ServerResponse },
    options: BatchOptions,
  ) {
    this.#ctx = ctx;
    this.#partner = partner;
    this.#isDryRun = isDryRun;
    this.#response = response;
    this.#options = { ...options, isLate: options.wasFrozen };
    this.#writer = new AnswerWriter(response);
    this.#splitter = new LineSplitter(options.bodyLimitBytes);
    this.#bytesBefore = ctx.req.socket.bytesRead - ctx.req.readableLength;
    ctx.state.lines = this.#counts;
  }

  /** @throws ClientGone */
  async run(): Promise<void> {
    const watch = setInterval(() => this.#noticeShutdown(), batchLimits.pauseMs);
    try {
      await this.#answerAll();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.#ctx.state.endedBy = error.outcome;
      this.#write(this.#next, error.answer, error);
    } finally {
      clearInterval(watch);
    }
    await this.#writer.finish();
  }

  #noticeShutdown(): void {
    if (this.#options.isShuttingDown()) this.#stopping.abort(new Refusal(answers.shuttingDown));
  }

  /** @throws Refusal if the answer ends before the body; ClientGone */
  async #answerAll(): Promise<void> {
    for await (const chunk of readChunks(this.#ctx.req, new Pace(), this.#stopping.signal)) {
      let lines: Line[] = [];
      for (const line of this.#splitter.split(chunk)) {
        if (line.bytes !== undefined && isBlank(line.bytes)) continue;
        if (!(await this.#hasToken())) {
          await this.#answer(lines);
          lines = [];
          this.#next = line.number;
          await this.#waitForToken();
        }
        lines.push(line);
        if (lines.length < batchLimits.linesTogether) continue;
        await this.#answer(lines);
        lines = [];
      }
      await this.#answer(lines);
      this.#next = this.#splitter.number;
      this.#bodyBytes += chunk.length;
      await this.#payForRest();
      await this.#writer.waitForRoom();
    }
  }

  /** Answers lines that have their tokens. */
  async #answer(lines: readonly Line[]): Promise<void> {
    const [first] = lines;
    if (first === undefined) return;
    this.#next = first.number;
    const { partner, secretId } = this.#admit();
    const receivedAt = new Date().toISOString();
    const verdicts: Verdict[] = [];
    while (verdicts.length < lines.length) {
      await this.#options.turns.take(partner.id, 0, () => this.#judgeSome(lines, verdicts), true);
      await nextTurn();
    }
    // The lines may have waited even if nothing was wrong before.
    this.#admit();
    const source = { partner: partner.id, defaultCountry: partner.country, secretId, receivedAt };
    const results = await Promise.all(verdicts.map((verdict) => this.#queue(verdict, source)));
    for (const [index, { number = 0, bytes }] of lines.entries()) {
      const result = results[index];
      if (result === undefined) break;
      this.#next = number;
      if (result.answer.status >= 500) throw result;
      this.#write(number, result.answer, result);
      if ("eventId" in result) this.#options.limiter.count(partner, bytes?.length ?? 0);
    }
    this.#next += 1;
  }

  #judgeSome(lines: readonly Line[], verdicts: Verdict[]): void {
    const untilMs = performance.now() + batchLimits.sliceMs;
    do {
      const line = lines[verdicts.length];
      if (line !== undefined) verdicts.push(this.#judge(line));
    } while (verdicts.length < lines.length && performance.now() < untilMs);
  }

  #judge({ number, bytes }: Line): Verdict {
    if (bytes === undefined) return new Refusal(answers.bodyTooLarge(this.#options.bodyLimitBytes));
    this.#lineBytes += bytes.length + 1;
    let values = 0;
    try {
      const sent = readLine(bytes, number);
      values = countJsonValues(sent.object);
      if (!this.#partner.kinds.includes(sent.kind))
        throw new Refusal(answers.invalidSecret, { outcome: "kind-not-allowed" });
      return judgeEvent(sent, this.#partner, this.#options);
    } catch (error) {
      if (error instanceof Refusal) return error;
      throw error;
    } finally {
      this.#options.limiter.charge(this.#partner, bytes.length, values);
    }
  }

  /** @returns the answer to the event; a Refusal if it could not be queued */
  async #queue(
    verdict: Verdict,
    source: { partner: string; defaultCountry: string | undefined; secretId: string; receivedAt: string },
  ): Promise<Refusal | Accepted> {
    if (verdict instanceof Refusal) return verdict;
    const { recordWarnings, isQueueAvailable, enqueue } = this.#options;
    const { warnings, ...event } = verdict;
    if (this.#isDryRun) {
      recordWarnings(source.partner, null, warnings);
      return { answer: answers.dryRunPassed(warnings), kind: event.kind };
    }
    if (!isQueueAvailable()) return new Refusal(answers.queueUnavailable);
    const eventId = createRequestId();
    try {
      await enqueue({ ...event, ...source, eventId, warnings: listCodes(warnings) });
    } catch (cause) {
      return new Refusal(answers.queueUnavailable, { cause });
    }
    recordWarnings(source.partner, eventId, warnings);
    return { answer: answers.accepted(eventId, warnings, event), kind: event.kind, eventId };
  }

  #write(number: number, answer: Answer, result: Refusal | Accepted): void {
    const { status, code } = answer;
    this.#counts[status] = (this.#counts[status] ?? 0) + 1;
    this.#writer.write(toBatchLine(number, answer));
    const { partner, secretId } = this.#ctx.state;
    const of = { requestId: requestIdOf(this.#ctx.req), status, partner, secretId, ip: this.#ctx.ip };
    if (result instanceof Refusal) {
      const { outcome, violations, subject } = result;
      this.#options.observeLine({ ...of, kind: "batch", outcome, violations, subject });
    } else this.#options.observeLine({ ...of, kind: result.kind, outcome: code, eventId: result.eventId });
  }

  /** @throws Refusal if an event would get that answer now; ClientGone */
  #admit(): { partner: Partner; secretId: string } {
    if (this.#response.closed) throw new ClientGone();
    const admitted = findPartner(this.#ctx, null, this.#options);
    if (admitted.partner.held) throw new Refusal(answers.partnerHeld);
    this.#partner = admitted.partner;
    return admitted;
  }

  async #hasToken(): Promise<boolean> {
    return (await this.#takeToken()).retryAfterS === undefined;
  }

  #takeToken(): ReturnType<PartnerLimiter["take"]> {
    const { burst } = this.#partner.rateLimit;
    const reserve = Math.max(0, Math.min(burst * batchLimits.reservedShare, burst - 1));
    return this.#options.limiter.take(this.#partner, reserve);
  }

  /** @throws as {@link #admit}; Refusal if the partner has used up its bytes of today */
  async #waitForToken(): Promise<void> {
    for (;;) {
      this.#admit();
      const { retryAfterS, isOverQuota } = await this.#takeToken();
      if (retryAfterS === undefined) return;
      if (isOverQuota) throw new Refusal(answers.quota(retryAfterS));
      await wait(batchLimits.pauseMs, undefined, { signal: this.#stopping.signal }).catch(() => {});
    }
  }

  /** What frames the lines, blank ones, and the rest of one that is too long cost tokens by their size. */
  async #payForRest(): Promise<void> {
    const { req } = this.#ctx;
    // The body has a newline at its end that was not sent.
    const framing = req.socket.bytesRead - this.#bytesBefore - this.#bodyBytes - req.readableLength;
    const restBytes = Math.max(framing, 0) + this.#bodyBytes - this.#lineBytes;
    for (; restBytes - this.#paidBytes >= tokenBytes; this.#paidBytes += tokenBytes) await this.#waitForToken();
  }
}

interface Accepted {
  answer: Answer;
  kind: string;
  /** Absent: nothing was queued. */
  eventId?: string;
}

/** Lines end with \r\n where they come from Windows. */
function isBlank(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d);
}
