import type { IncomingMessage, ServerResponse } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { ClientGone, Pace, Refusal, type StreamedAnswer } from "@booking-events/http";
import { answers, lookupAnswers, type ReferenceKind } from "@booking-events/schema";
import { bookingKey, type Comparison, type ListedBooking, type ListedHere } from "@booking-events/store";
import { orUnavailable } from "../or-unavailable.ts";
import { KeySet } from "./key-set.ts";
import type { HoldBytes } from "./lists-under-way.ts";
import { type ListedReference, readList } from "./read-list.ts";
import { type WrongLine, WrongLines } from "./wrong-lines.ts";

export const reconcileLimits = {
  /** Of the answer's lines about listed bookings, which are held until the whole list has arrived. */
  maxHeldBytes: 64 * 1_024 * 1_024,
  /** For sending the answer. */
  answerTimeoutMs: 300_000,
};

export interface ReconcileSources {
  /** @throws if the database cannot be read */
  compare: (partner: string, listed: readonly ListedBooking[]) => Promise<Comparison[]>;
  /**
   * Reads the partner's bookings that were created before a time, in pages.
   *
   * @throws as above
   */
  readBookings: (partner: string, createdBefore: Date) => AsyncIterable<ListedHere[]>;
}

interface ListToCompare {
  req: IncomingMessage;
  hold: HoldBytes;
  /** Otherwise, an empty list is refused: it is more often a failed export than a partner without bookings. */
  mayBeEmpty: boolean;
  isShuttingDown: () => boolean;
}

type Counts = Record<Comparison["result"] | "references" | "unknown", number>;

/**
 * Compares a partner's list with our bookings. The answer begins when the list has been read: many clients read nothing
 * before they have sent everything, and we would wait for each other. Until then, only what differs is held.
 *
 * A line of the answer names a booking and what differs. The last line is a summary, so an answer that was cut off can
 * be recognised. A booking that is listed several times counts once. After a wrong line, nothing more is compared.
 *
 * @throws Refusal, ClientGone; what the sources throw
 */
export async function reconcile(
  sources: ReconcileSources,
  partner: string,
  { req, hold, mayBeEmpty, isShuttingDown }: ListToCompare,
  limits = reconcileLimits,
): Promise<StreamedAnswer> {
  const startedAt = new Date();
  const listed = new KeySet();
  const counts: Counts = {
    references: 0,
    same: 0,
    missing: 0,
    different: 0,
    "deleted-here": 0,
    erased: 0,
    unknown: 0,
  };
  const held: Buffer[] = [];
  let heldBytes = 0;
  const wrong = new WrongLines();
  for await (const page of readList(req, wrong)) {
    if (isShuttingDown()) throw new Refusal(answers.shuttingDown);
    const bookings = findNew(page, partner, { listed, wrong });
    hold(heldBytes + listed.bytes);
    if (wrong.areThere) continue;
    const lines = await comparePage(sources, partner, bookings, counts);
    heldBytes += lines.length;
    if (heldBytes > limits.maxHeldBytes) throw new Refusal(lookupAnswers.tooManyDifferences);
    hold(heldBytes + listed.bytes);
    if (lines.length > 0) held.push(lines);
  }
  wrong.refuse();
  if (listed.size === 0 && !mayBeEmpty) throw new Refusal(lookupAnswers.emptyList);

  async function stream(response: ServerResponse): Promise<void> {
    const deadlineMs = performance.now() + limits.answerTimeoutMs;
    // While no booking of ours is unknown to the partner, nothing is sent.
    response.setTimeout(limits.answerTimeoutMs);
    const pace = new Pace();
    const write = (lines: string | Buffer) => writeInTime(response, lines, { pace, deadlineMs });
    for (let lines = held.shift(); lines !== undefined; lines = held.shift()) await write(lines);
    for await (const page of sources.readBookings(partner, startedAt)) {
      if (isShuttingDown()) throw new Error("The process is shutting down.");
      const unknown = page.filter(({ state, key }) => state === "active" && !listed.has(key));
      counts.unknown += unknown.length;
      const lines = unknown.map((booking) => toLine(booking, "unknown", booking.updatedAt));
      if (lines.length > 0) await write(lines.join(""));
    }
    await write(`${JSON.stringify({ summary: counts })}\n`);
  }
  return { status: 200, code: "reconciled", headers: { "Content-Type": "application/x-ndjson" }, stream };
}

type NewBooking = ListedReference & { key: Buffer };

/** Leaves out the bookings that an earlier line has named, too. */
function findNew(
  page: ListedReference[],
  partner: string,
  { listed, wrong }: { listed: KeySet; wrong: WrongLines },
): NewBooking[] {
  return page.flatMap((one) => {
    const key = bookingKey(partner, one.referenceKind, one.reference);
    const mark = toMark(one.digest);
    const earlier = listed.add(key, mark);
    if (earlier === undefined) return { ...one, key };
    // Which of the two is right, only the partner knows.
    if (earlier !== mark) wrong.add(one.line, contradiction);
    return [];
  });
}

const contradiction: WrongLine = {
  code: "contradiction",
  member: "digest",
  problem: "an earlier line has the same reference with another digest, or only one of the two has a digest.",
};

/** Two digests have the same mark once in 4 billion times. */
function toMark(digest: string | undefined): number {
  return digest === undefined ? 0 : Number.parseInt(digest.slice(0, 8), 16) || 1;
}

async function comparePage(
  { compare }: ReconcileSources,
  partner: string,
  bookings: NewBooking[],
  counts: Counts,
): Promise<Buffer> {
  if (bookings.length === 0) return Buffer.alloc(0);
  const comparisons = await orUnavailable(compare(partner, bookings));
  let lines = "";
  for (const [index, { result, updatedAt }] of comparisons.entries()) {
    const booking = bookings[index];
    counts.references += 1;
    counts[result] += 1;
    if (result !== "same" && booking !== undefined)
      lines += toLine({ ...booking, reference: booking.written }, result, updatedAt);
  }
  return Buffer.from(lines);
}

function toLine(
  { reference, referenceKind }: { reference: string; referenceKind: ReferenceKind },
  result: string,
  updatedAt: Date | null,
): string {
  const line = {
    reference,
    ...(referenceKind === "trip" ? {} : { referenceKind }),
    result,
    ...(updatedAt === null ? {} : { updatedAt }),
  };
  return `${JSON.stringify(line)}\n`;
}

/**
 * Waits until the client has read enough. A client that reads nothing at all is disconnected by the server.
 *
 * @throws ClientGone if it has disconnected, or reads too slowly
 */
async function writeInTime(
  response: ServerResponse,
  lines: string | Buffer,
  { pace, deadlineMs }: { pace: Pace; deadlineMs: number },
): Promise<void> {
  if (response.destroyed || performance.now() > deadlineMs) throw new ClientGone();
  pace.add(Buffer.byteLength(lines));
  response.write(lines);
  // A client that reads as fast as we write would keep all others waiting.
  await nextTurn();
  if (!response.writableNeedDrain) return;
  const { promise: written, resolve, reject } = Promise.withResolvers<void>();
  const giveUp = () => reject(new ClientGone());
  response.once("drain", resolve).once("close", giveUp);
  try {
    await pace.wait(written);
  } catch {
    throw new ClientGone();
  } finally {
    response.off("drain", resolve).off("close", giveUp);
  }
}
