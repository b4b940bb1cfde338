/**
 * What programs that follow the feed keep, with events as the worker applies them, and erasures. The program is the
 * example of the feed's README, as it is printed.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import {
  type BookingChange,
  type DeliverOptions,
  deliver,
  FeedGapError,
  follow,
  type SingleOptions,
} from "@booking-events/feed";
import { waitFor } from "@booking-events/harness";
import { sampleEvent, sampleEventId } from "@booking-events/harness/sample-event";
import { useTestDatabase } from "@booking-events/harness/test-database";
import type { EventEnvelope, EventKind } from "@booking-events/schema";
import {
  beginErasure,
  type DigestKey,
  eraseBooking,
  maintain,
  openDigestKey,
  resetFeedReader,
} from "@booking-events/store";
import fc from "fast-check";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { applyEvents } from "./apply-events.ts";

/** Every night tries more: see `vitest.nightly.ts`. */
const numRuns = Number(process.env["FEED_RUNS"] ?? 4);
const packageDirectory = join(import.meta.dirname, "../../../../packages/feed");
const readme = readFileSync(join(packageDirectory, "README.md"), "utf8");
const { pool, url } = useTestDatabase({ maxConnections: 6 });
let digestKey: DigestKey;

beforeAll(async () => {
  digestKey = await openDigestKey(pool, undefined);
  await pool.query(readBlock("sql"));
});

let number: number;

beforeEach(forgetAll);

async function forgetAll(): Promise<void> {
  number = 0;
  await pool.query(`truncate bookings, booking_events, booking_changes, feed_readers, arrivals, erasures cascade;
    update feed_position set last_id = 0, kept_from = 1; update log_retention set horizon = null`);
}

/** @param text that it has */
function readBlock(language: string, text = ""): string {
  const blocks = readme.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, "gms"));
  const block = [...blocks].map(([, code = ""]) => code).find((code) => code.includes(text));
  if (block === undefined) throw new Error(`The README has no block of ${language} with ${text}.`);
  return block;
}

/** An arrival date that no other event has. */
function nextArrival(): string {
  return new Date(Date.UTC(2027, 0, 1 + number)).toISOString().slice(0, 10);
}

async function send(kind: EventKind, reference: string, more: Partial<EventEnvelope> = {}): Promise<void> {
  number += 1;
  const fields = kind === "delete" ? {} : { consumerTripArrivalDate: nextArrival() };
  const payload = { consumerTripPartnerExternalReference: reference, ...fields };
  const options = { digestKey, duplicateWindowMs: 1, isAlone: true };
  await applyEvents(pool, [sampleEvent(number, { kind, payload, ...more })], options);
}

/** As `ops guests erase` does. */
async function erase(reference: string): Promise<void> {
  const event = { id: sampleEventId(1), sequence: 1, receivedAt: new Date() };
  const booking = { partner: "acme", referenceKind: "trip", reference, event } as const;
  const erasureId = await beginErasure(pool, { by: "test", reason: "test", search: "reference" });
  await eraseBooking(pool, digestKey, booking, { erasureId, by: "test" });
}

/** As if maintenance had removed them. */
async function loseChangesBefore(id: number): Promise<void> {
  await pool.query("delete from booking_changes where id < $1", [id]);
  await pool.query("update feed_position set kept_from = greatest(kept_from, $1)", [id]);
}

const arrivals = async (): Promise<unknown[]> =>
  (await pool.query("select booking_id, reference, arrival_date from arrivals order by booking_id")).rows;

/** What a program should keep when it has read all changes. */
const expected = async (): Promise<unknown[]> =>
  (
    await pool.query(
      `select booking_id, reference, payload ->> 'consumerTripArrivalDate' as arrival_date
       from bookings where state = 'active' order by booking_id`,
    )
  ).rows;

interface Places {
  reader: number | null;
  isAtEnd: boolean;
  last: number;
  keptFrom: number;
}

async function places(): Promise<Places> {
  const { rows } = await pool.query<Places>(
    `select reader.last_id as reader, position.last_id as last, kept_from as "keptFrom",
       (reader.last_id = position.last_id and snapshot_after is null) is true as "isAtEnd"
     from feed_position as position left join feed_readers as reader on name = 'arrivals'`,
  );
  return rows[0] as Places;
}

const isAtEnd = async () => expect(await places()).toMatchObject({ isAtEnd: true });

describe("the README's example, as printed,", () => {
  let example: ChildProcess | undefined;

  function startExample(stderr: "inherit" | "ignore" = "inherit", call = "await deliver("): ChildProcess {
    const code = readBlock("ts", call);
    const args = ["--conditions=@booking-events/source", "--input-type=module-typescript", "--eval", code];
    example = spawn(process.execPath, args, {
      cwd: packageDirectory,
      env: { ...process.env, DATABASE_URL: url },
      stdio: ["ignore", stderr, stderr],
    });
    return example;
  }

  async function stop(): Promise<void> {
    if (example === undefined) return;
    const exited = once(example, "exit");
    example.kill("SIGTERM");
    expect(await exited).toEqual([0, null]);
    example = undefined;
  }

  afterEach(() => example?.kill("SIGKILL"));

  test("keeps a table as current as the bookings", async () => {
    await send("create", "T1");
    startExample();
    await waitFor(async () => expect(await arrivals()).toEqual(await expected()));
    expect(await arrivals()).toHaveLength(1);
    await send("delete", "T1");
    await waitFor(async () => expect(await arrivals()).toEqual([]));
    await send("create", "T1");
    await waitFor(async () => expect(await arrivals()).toHaveLength(1));
    await stop();
  });

  test("of the plain loop notes each change in order", async () => {
    await pool.query("create table journal (id bigint, booking_id uuid, change text)");
    await send("create", "T1");
    startExample("inherit", "await follow(");
    const journal = async () => (await pool.query("select id, change from journal order by ctid")).rows;
    await waitFor(async () => expect(await journal()).toHaveLength(1));
    await send("delete", "T1");
    const both = [
      { id: 1, change: "created" },
      { id: 2, change: "deleted" },
    ];
    await waitFor(async () => expect(await journal()).toEqual(both));
    await stop();
  });

  test.each([0, 1, 40])("erases a guest, though it is %i changes behind at the erasure", async (behind) => {
    await send("create", "T1");
    await send("create", "OTHER");
    const frozen = startExample();
    await waitFor(isAtEnd);
    expect(await arrivals()).toHaveLength(2);
    frozen.kill("SIGSTOP");
    for (let count = 0; count < behind; count += 1) await send("update", "T1");
    await erase("T1");
    frozen.kill("SIGCONT");
    await waitFor(isAtEnd);
    expect(await arrivals()).toEqual(await expected());
    expect(await arrivals()).toMatchObject([{ reference: "OTHER" }]);
    await stop();
  });

  test("erases a guest when it starts over, after the feed has lost the changes", { timeout: 60_000 }, async () => {
    await send("create", "T1");
    await send("create", "OTHER");
    startExample();
    await waitFor(isAtEnd);
    await stop();
    await send("update", "T1");
    await erase("T1");
    await send("update", "OTHER");
    await loseChangesBefore(5);
    expect(await once(startExample("ignore"), "exit")).toEqual([1, null]);
    expect(await arrivals()).toHaveLength(2);
    expect(await resetFeedReader(pool, "arrivals")).toBe(true);
    startExample();
    await waitFor(isAtEnd);
    expect(await arrivals()).toEqual(await expected());
    expect(await arrivals()).toMatchObject([{ reference: "OTHER" }]);
    await stop();
  });
});

describe("a program with the README's handler", () => {
  type Example = DeliverOptions & SingleOptions;
  let example: Example;
  beforeAll(async () => {
    example = await readExample();
  });

  /** Runs the example with a `deliver` that only notes its options. */
  async function readExample(): Promise<Example> {
    const code = stripTypeScriptTypes(readBlock("ts", "await deliver(")).replace(/^import .*$/m, "");
    let options: Example | undefined;
    const AsyncFunction = (async () => {}).constructor as FunctionConstructor;
    await new AsyncFunction("deliver", "process", code)(
      (given: Example) => {
        options = given;
      },
      { once: () => {}, env: {} },
    );
    if (options === undefined) throw new Error("The example does not call deliver.");
    return options;
  }

  /** Takes this many deliveries, or all. A program without a place takes a snapshot first. */
  async function read(count: number): Promise<void> {
    if ((await places()).isAtEnd) return;
    const stopping = new AbortController();
    let taken = 0;
    const delivering = deliver({
      ...example,
      database: url,
      listenUrl: null,
      pollIntervalMs: 5,
      concurrency: 1,
      signal: stopping.signal,
      logger: { info: () => {}, warn: () => {} },
      handle: async (delivery, context) => {
        await example.handle(delivery, context);
        taken += 1;
        if (taken === count) stopping.abort();
      },
    });
    let isOver = false;
    const over = () => {
      isOver = true;
    };
    delivering.then(over, over);
    await waitFor(async () => isOver || (await places()).isAtEnd);
    stopping.abort();
    await delivering;
  }

  const place = fc.nat({ max: 2 });
  const step = fc.oneof(
    fc.record({ do: fc.constantFrom("create" as const, "update" as const, "delete" as const), place }),
    fc.record({ do: fc.constant("erase" as const), place }),
    fc.record({ do: fc.constant("read" as const), count: fc.integer({ min: 1, max: 4 }) }),
    fc.constant({ do: "read to the end" as const }),
    fc.constant({ do: "reset" as const }),
    fc.record({ do: fc.constant("lose changes" as const), keep: fc.nat({ max: 3 }) }),
    fc.constant({ do: "lose events" as const }),
  );
  type Step = typeof step extends fc.Arbitrary<infer One> ? One : never;

  async function take(one: Step, references: string[]): Promise<void> {
    switch (one.do) {
      case "create":
      case "update":
      case "delete":
        return send(one.do, references[one.place] as string);
      case "erase":
        await erase(references[one.place] as string);
        // Another guest's booking.
        references[one.place] = `T${one.place}-${number}`;
        return;
      case "read":
        return read(one.count);
      case "read to the end":
        return readToEnd();
      case "reset":
        return void (await resetFeedReader(pool, "arrivals"));
      case "lose changes":
        return loseChangesBefore((await places()).last - one.keep);
      case "lose events":
        // They leave the log before their changes leave the feed.
        await pool.query("delete from booking_events");
    }
  }

  async function readToEnd(): Promise<void> {
    await startOverAfterGap();
    await read(1_000);
    expect(await arrivals()).toEqual(await expected());
  }

  /** As an operator does. */
  async function startOverAfterGap(): Promise<void> {
    const { reader, keptFrom } = await places();
    if (reader === null || reader + 1 >= keptFrom) return;
    await expect(read(1_000)).rejects.toThrow(FeedGapError);
    await resetFeedReader(pool, "arrivals");
  }

  test("keeps what the bookings hold, whatever happens in whatever order", { timeout: 300_000 }, async () => {
    const property = fc.asyncProperty(fc.array(step, { maxLength: 40, size: "max" }), async (steps) => {
      const references = ["T0", "T1", "T2"];
      for (const one of steps) {
        await startOverAfterGap();
        await take(one, references);
      }
      await readToEnd();
    });
    await fc.assert(property.beforeEach(forgetAll), { numRuns });
  });
});

describe("a change", () => {
  const day = 24 * 60 * 60 * 1_000;
  /** In the middle of a month that is older than the log is kept. */
  const longAgo = Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth() - 20, 15);
  const rules = { retentionDays: 400, deletedRetentionDays: 0, deadLetterRetentionDays: 0 };

  /** An event that was received long ago, and is applied now. */
  async function sendLate(kind: EventKind, reference: string, afterMs: number): Promise<void> {
    const at = longAgo + afterMs;
    const hex = at.toString(16).padStart(12, "0");
    await send(kind, reference, {
      eventId: `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`,
      sequence: at * 1_000,
      receivedAt: new Date(at).toISOString(),
    });
  }

  async function dropMonth(): Promise<void> {
    const { problems } = await maintain(pool, rules, { findClockProblem: async () => null });
    expect(problems).toEqual([]);
    const { rows } = await pool.query("select count(*)::int as left from booking_events where received_at < $1", [
      new Date(longAgo + 10 * day),
    ]);
    expect(rows).toEqual([{ left: 0 }]);
  }

  async function readAll(): Promise<BookingChange[]> {
    const stopping = new AbortController();
    const changes: BookingChange[] = [];
    const { last } = await places();
    await follow({
      ...{ name: "lagging", database: url, signal: stopping.signal },
      onChange: async (change) => {
        changes.push(change);
        if (change.id === last) stopping.abort();
      },
    });
    return changes;
  }

  const describeChange = ({ reference, change, payload, payloadState, previousPayloadState }: BookingChange) =>
    [reference, change, payload?.consumerTripArrivalDate ?? null, payloadState, previousPayloadState] as const;

  test("of an active booking has content, though its event was received a month earlier and has left the log", async () => {
    await pool.query(
      `create table old_month (like booking_events including all);
       do $$ begin execute format('alter table booking_events attach partition old_month for values from (%L) to (%L)',
         first_event_id('${new Date(longAgo - day).toISOString()}'), first_event_id('${new Date(longAgo + day).toISOString()}')); end $$`,
    );
    const name = `booking_events_${new Date(longAgo).toISOString().slice(0, 7).replace("-", "_")}`;
    await pool.query(`alter table old_month rename to ${name}`);
    await sendLate("create", "ACTIVE", 1_000);
    await sendLate("create", "CHANGED", 2_000);
    await sendLate("create", "DELETED", 3_000);
    await sendLate("create", "ERASED", 4_000);
    await sendLate("delete", "GONE", 5_000);
    const active = await expected();
    await dropMonth();
    await send("update", "CHANGED");
    const changed = nextArrival();
    await send("delete", "DELETED");
    await erase("ERASED");
    const changes = await readAll();
    const arrivalOf = (reference: string) =>
      (active as { reference: string; arrival_date: string }[]).find((one) => one.reference === reference)
        ?.arrival_date;
    expect(changes.map(describeChange)).toEqual([
      ["ACTIVE", "created", arrivalOf("ACTIVE"), "current", "none"],
      ["CHANGED", "created", changed, "current", "none"],
      ["DELETED", "created", null, "removed", "none"],
      [null, "created", null, "erased", "none"],
      ["GONE", "deleted", null, "deleted", "none"],
      ["CHANGED", "updated", changed, "as-changed", "removed"],
      ["DELETED", "deleted", null, "deleted", "removed"],
      [null, "erased", null, "erased", "erased"],
    ]);
  });
});

test("a booking keeps its random id over deletion, re-creation and erasure, in all tables and changes", async () => {
  await send("create", "T1");
  await send("delete", "T1");
  await send("create", "T1");
  await send("create", "OTHER");
  const { rows: bookings } = await pool.query("select reference, booking_id from bookings order by sequence");
  expect(new Set(bookings.map(({ booking_id }) => booking_id)).size).toBe(2);
  const { rows: details } = await pool.query("select reference, booking_id from booking_details order by sequence");
  expect(details).toEqual(bookings);
  await erase("T1");
  const id = bookings[0].booking_id;
  // RFC 9562: version 4, which is random but for these bits.
  expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  const { rows: changes } = await pool.query("select booking_id, reference, change from booking_changes order by id");
  expect(changes).toEqual([
    { booking_id: id, reference: null, change: "created" },
    { booking_id: id, reference: null, change: "deleted" },
    { booking_id: id, reference: null, change: "recreated" },
    { booking_id: bookings[1].booking_id, reference: "OTHER", change: "created" },
    { booking_id: id, reference: null, change: "erased" },
  ]);
  const { rows: erased } = await pool.query("select booking_id from bookings where erased_at is not null");
  expect(erased).toEqual([{ booking_id: id }]);
});
