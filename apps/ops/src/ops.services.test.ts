import { spawn } from "node:child_process";
import { hash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { closeSync, existsSync, openSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import type { BookingState, Outcome } from "@booking-events/bookings";
import { execute } from "@booking-events/harness/execute";
import { useTestDatabase } from "@booking-events/harness/test-database";
import type { EventKind } from "@booking-events/schema";
import {
  bookingKey,
  type EventToInsert,
  insertBookings,
  insertEvents,
  readLogged,
  updateBookings,
  writeDeadLetter,
} from "@booking-events/store";
import { beforeEach, describe, expect, test } from "vitest";
import { type Ran, runOps, spawnOps } from "./testing/run-ops.ts";

const { pool, url } = useTestDatabase({ maxConnections: 2 });

beforeEach(() => pool.query("truncate bookings, booking_events, dead_letters"));

const start = Date.UTC(2026, 10, 20) * 1_000;
const guest = "Robin Canary";
const payload = {
  consumerGivenName: guest,
  consumerTripPartnerExternalReference: "TRIP-1",
  consumerTripAccommodationName: "Canary Hotel",
  consumerTripDestinationName: "Lisbon",
  consumerTripDestinationCountryName: "Portugal",
  consumerTripDestinationAirportCode: "LIS",
  consumerTripDepartureAirportCode: "LHR",
  consumerTripDepartureFlightNumber: "XX1234",
  consumerTripArrivalDate: "2027-06-14",
};

function eventId(number: number): string {
  return `0199a000-0000-7000-8000-${String(number).padStart(12, "0")}`;
}

/** Events are numbered in the order of receipt. */
function event(number: number, kind: EventKind, outcome: Outcome, more: Partial<EventToInsert> = {}): EventToInsert {
  const { partner = "acme", referenceKind = "trip", reference = "TRIP-1" } = more;
  const sequence = start + number * 1_000_000;
  return {
    id: eventId(number),
    partner,
    kind,
    referenceKind,
    reference,
    bookingKey: bookingKey(partner, referenceKind, reference),
    sequence,
    idempotencyKey: null,
    payload: JSON.stringify(payload),
    contentDigest: hash("sha256", String(number), "hex").slice(0, 32),
    outcome,
    duplicateOf: null,
    warnings: [],
    after: null,
    receivedAt: new Date(sequence / 1_000),
    ...more,
  };
}

async function insertBooking(
  state: "active" | "deleted",
  content: unknown = payload,
  reference = "TRIP-1",
  referenceKind: "trip" | "consumer" = "trip",
) {
  await insertBookings(pool, [
    {
      bookingKey: bookingKey("acme", referenceKind, reference),
      bookingId: randomUUID(),
      partner: "acme",
      referenceKind,
      reference,
      state: {
        state,
        eventId: eventId(1),
        sequence: start,
        content: null,
        lastSequence: start,
        createdAt: new Date("2026-11-20T00:00:01Z"),
        updatedAt: new Date("2026-11-20T00:00:02.500Z"),
        deletedAt: state === "deleted" ? new Date("2026-11-20T00:00:03Z") : null,
      },
      revision: 1,
      newContent: null,
    },
  ]);
  await pool.query("update bookings set payload = $1 where reference = $2", [JSON.stringify(content), reference]);
}

async function ops(...args: string[]): Promise<Ran> {
  return runOps(args, { environment: { DATABASE_URL: url, PARTNERS_FILE: "there-is-none.json" } });
}

async function ok(...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await ops(...args);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  return stdout;
}

describe("events list", () => {
  test("shows the newest first, with their outcomes", async () => {
    await insertEvents(pool, [event(1, "create", "created"), event(2, "delete", "deleted", { partner: "other" })]);
    expect(await ok("events", "list")).toBe(
      [
        "RECEIVED              KIND    OUTCOME     EVENT ID                              PARTNER       REFERENCE",
        `2026-11-20T00:00:02Z  delete  deleted     ${eventId(2)}  other         TRIP-1`,
        `2026-11-20T00:00:01Z  create  created     ${eventId(1)}  acme          TRIP-1`,
        "",
      ].join("\n"),
    );
  });

  test("--json has every column but the payload, and --partner and --limit select", async () => {
    await insertEvents(pool, [
      event(1, "create", "created", { partner: "other" }),
      event(2, "create", "created", { idempotencyKey: "k-1" }),
      event(3, "update", "duplicate", { idempotencyKey: "k-1", duplicateOf: eventId(2) }),
      event(4, "delete", "deleted", { partner: "other" }),
    ]);
    const json = await ok("events", "list", "--json", "--partner", "acme", "--limit", "1");
    expect(JSON.parse(json)).toEqual([
      {
        id: eventId(3),
        partner: "acme",
        kind: "update",
        referenceKind: "trip",
        reference: "TRIP-1",
        sequence: start + 3_000_000,
        idempotencyKey: "k-1",
        secretId: null,
        outcome: "duplicate",
        duplicateOf: eventId(2),
        warnings: [],
        receivedAt: "2026-11-20T00:00:03.000Z",
        processedAt: expect.stringMatching(/^\d{4}-.*Z$/),
      },
    ]);
    expect(json).not.toContain("Canary");
  });

  test("--secret selects what came by a secret that has leaked", async () => {
    await insertEvents(pool, [
      event(1, "create", "created", { secretId: "s1" }),
      event(2, "update", "updated", { secretId: "s2" }),
      event(3, "update", "updated"),
      event(4, "update", "updated", { partner: "other", secretId: "s1" }),
    ]);
    const listed = JSON.parse(await ok("events", "list", "--partner", "acme", "--secret", "s1", "--json"));
    expect(listed).toMatchObject([{ id: eventId(1), secretId: "s1" }]);
    const { exitCode, stderr } = await ops("events", "list", "--secret", "s1");
    expect(exitCode).toBe(2);
    expect(stderr).toContain("Add --partner.");
  });

  describe("selects", () => {
    /** As ingest makes them: the first 48 bits are the time. */
    const idAt = (time: string, number: number) => {
      const hex = new Date(time).getTime().toString(16).padStart(12, "0");
      return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-${String(number).padStart(12, "0")}`;
    };
    const [first, second, third, fourth] = [
      idAt("2026-11-20T10:00:00Z", 1),
      idAt("2026-11-20T11:00:00Z", 2),
      idAt("2026-11-20T11:00:00.001Z", 3),
      idAt("2026-11-20T12:00:00Z", 4),
    ];
    const consumer = { referenceKind: "consumer", reference: "C-1" } as const;

    beforeEach(async () => {
      await insertEvents(pool, [
        event(1, "create", "created", { id: first }),
        event(2, "update", "updated", { id: second, partner: "other" }),
        event(3, "update", "duplicate", { id: third }),
        event(4, "delete", "deleted", { id: fourth, ...consumer, bookingKey: bookingKey("acme", "consumer", "C-1") }),
      ]);
    });

    test.each([
      ["since a time, included", ["--since", "2026-11-20T11:00:00.001Z"], [fourth, third]],
      ["until a time, not included", ["--until", "2026-11-20T12:00:00+01:00"], [first]],
      ["a period", ["--since", "2026-11-20T11:00:00Z", "--until", "2026-11-20T12:00:00Z"], [third, second]],
      ["the last hour", ["--since", "1h"], []],
      ["a kind", ["--kind", "update"], [third, second]],
      ["an outcome", ["--outcome", "duplicate"], [third]],
      ["a trip's reference", ["--partner", "acme", "--reference", "TRIP-1"], [third, first]],
      ["a consumer's reference", ["--partner", "acme", "--reference", "C-1"], [fourth]],
      ["the next page", ["--limit", "2", "--before", third], [second, first]],
      [
        "all of these",
        ["--partner", "acme", "--kind", "update", "--outcome", "duplicate", "--since", "2026-11-20"],
        [third],
      ],
    ])("%s", async (_, args, ids) => {
      const events = JSON.parse(await ok("events", "list", "--json", ...args)) as { id: string }[];
      expect(events.map(({ id }) => id)).toEqual(ids);
    });

    test.each([
      [["--since", "yesterday"], /2026-11-20T12:00:00Z.*2h/],
      [["--kind", "cancel"], /create, update, delete/],
      [["--reference", "TRIP-1"], /Add --partner/],
    ])("nothing with %j, and says what to give", async (args, message) => {
      expect(await ops("events", "list", ...args)).toMatchObject({
        exitCode: 2,
        stderr: expect.stringMatching(message),
      });
    });
  });

  test("without events says so, or prints an empty array", async () => {
    expect(await ok("events", "list", "--partner", "acme")).toBe("There are no such events.\n");
    expect(JSON.parse(await ok("events", "list", "--json"))).toEqual([]);
  });
});

describe("events show", () => {
  test("shows what the partner sent only on request", async () => {
    await insertEvents(pool, [event(1, "create", "created", { idempotencyKey: "k-1", secretId: "s2" })]);
    const shown = await ok("events", "show", eventId(1).toUpperCase());
    expect(shown).toMatch(new RegExp(`^Event ${eventId(1)}: created\n`));
    expect(shown).toMatch(/^ {2}Idempotency key {2}k-1$/m);
    expect(shown).toMatch(/^ {2}Secret +s2$/m);
    const json = await ok("events", "show", eventId(1), "--json");
    expect(JSON.parse(json)).not.toHaveProperty("payload");
    expect(shown + json).not.toContain("Canary");
    expect(await ok("events", "show", eventId(1), "--payload")).toContain(guest);
    await pool.query("update booking_events set payload = null");
    expect(await ok("events", "show", eventId(1), "--payload")).toContain("The content was removed");
    await pool.query("update booking_events set payload = $1", [payload]);
    expect(JSON.parse(await ok("events", "show", eventId(1), "--payload", "--json")).payload).toEqual(payload);
  });

  test("of an event that could not be applied shows the reason, and what was queued only on request", async () => {
    await writeDeadLetter(pool, {
      eventId: eventId(1),
      partner: "acme",
      kind: "create",
      referenceKind: "consumer",
      reference: "C-1",
      sequence: start,
      errorCode: "22P02",
      error: "The database can't hold it.",
      attempts: 3,
      envelope: Buffer.from(JSON.stringify(payload)),
    });
    const shown = await ok("events", "show", eventId(1));
    expect(shown).toMatch(/^ {2}Reference +C-1 \(the consumer's\)$/m);
    expect(shown).toMatch(/could not be applied\n.*Error +22P02: The database can't hold it\./s);
    const stdout = await ok("events", "show", eventId(1), "--json");
    expect(JSON.parse(stdout)).toMatchObject({
      id: eventId(1),
      referenceKind: "consumer",
      outcome: null,
      deadLetter: { errorCode: "22P02", attempts: 3, resolvedAt: null },
    });
    expect(shown + stdout).not.toContain("Canary");
    expect(JSON.parse(stdout).deadLetter).not.toHaveProperty("envelope");
    expect(await ok("events", "show", eventId(1), "--payload")).toContain(guest);
  });

  test("of an unknown event fails, and of something else is wrong usage", async () => {
    const unknown = await ops("events", "show", randomUUID());
    expect(unknown).toMatchObject({ exitCode: 1, stdout: "" });
    expect(unknown.stderr).toMatch(/^No event .* has been processed.*\n$/);
    expect((await ops("events", "show", "1")).exitCode).toBe(2);
  });
});

describe("bookings verify", () => {
  const contentDigest = hash("sha256", "content", "hex").slice(0, 32);
  const state = (eventNumber: number): BookingState => ({
    state: "active",
    eventId: eventId(eventNumber),
    sequence: start + eventNumber * 1_000_000,
    content: { digest: contentDigest, eventId: eventId(1), newestKeylessSequence: start + 2_000_000 },
    lastSequence: start + 2_000_000,
    createdAt: new Date((start + 1_000_000) / 1_000),
    updatedAt: new Date((start + eventNumber * 1_000_000) / 1_000),
    deletedAt: null,
  });

  async function insertHistory(decider: number): Promise<void> {
    const first = state(1);
    const after = {
      ...first,
      content: first.content && { ...first.content, newestKeylessSequence: start + 1_000_000 },
    };
    await insertEvents(pool, [
      event(1, "create", "created", { contentDigest, after }),
      event(2, "update", "unchanged", { contentDigest, after: first }),
    ]);
    const booking = { ...key, state: state(decider), revision: 1, newContent: "logged" as const };
    await insertBookings(pool, await readLogged(pool, [booking]));
  }

  const trip = { partner: "acme", referenceKind: "trip" as const, reference: "TRIP-1" };
  const key = { ...trip, bookingId: randomUUID(), bookingKey: bookingKey("acme", "trip", "TRIP-1") };

  /** @returns what is printed when the booking has this state, and its first two events were removed */
  async function verifyWithoutFirstEvents(state: BookingState, revision: number): Promise<string> {
    await updateBookings(pool, [{ ...key, state, revision, newContent: "kept" }]);
    await pool.query("delete from booking_events where id = any($1)", [[eventId(1), eventId(2)]]);
    await pool.query("update log_retention set horizon = '2026-11-20T01:00Z'");
    const { stdout } = await ops("bookings", "verify");
    await pool.query("update log_retention set horizon = null");
    return stdout;
  }

  test("tells of the first thousand bookings that differ, and counts the others", async () => {
    const references = Array.from({ length: 1_002 }, (_, index) => `TRIP-${index}`);
    await pool.query(
      `insert into bookings (booking_key, booking_id, partner, reference_kind, reference, state, event_id, sequence,
         last_sequence, revision, created_at, updated_at)
       select key, gen_random_uuid(), 'acme', 'trip', reference, 'active', gen_random_uuid(), 1, 1, 1, now(), now()
       from unnest($1::bytea[], $2::text[]) as booking (key, reference)`,
      [references.map((reference) => bookingKey("acme", "trip", reference)), references],
    );
    const { stdout } = await ops("bookings", "verify");
    expect(stdout.match(/^Booking TRIP-/gm)).toHaveLength(1_000);
    expect(stdout).toMatch(/^… and 2 more\.\n1002 bookings/m);
    const { repairs, ...counts } = JSON.parse((await ops("bookings", "repair", "--all", "--json")).stdout);
    expect(repairs).toHaveLength(1_000);
    expect(counts).toEqual({ bookings: 1_002, repaired: 0, refused: 1_002, isDryRun: true });
  }, 120_000);

  test("finds no difference", async () => {
    await insertHistory(1);
    expect(await ok("bookings", "verify")).toBe("1 bookings with 2 events: 0 bookings differ from their logs.\n");
    expect(JSON.parse(await ok("bookings", "verify", "acme", "TRIP-1", "--json"))).toEqual({
      bookings: 1,
      events: 2,
      olderThanLog: 0,
      differing: 0,
      different: [],
    });
  });

  test("reads a long log to its end, beside a short one", async () => {
    await insertHistory(1);
    const repetitions = Array.from({ length: 1_098 }, (_, index) => index + 3);
    const after = (number: number): BookingState => {
      const sequence = start + number * 1_000_000;
      const { content, ...first } = state(1);
      return { ...first, lastSequence: sequence, content: content && { ...content, newestKeylessSequence: sequence } };
    };
    await insertEvents(
      pool,
      repetitions.map((number) => event(number, "update", "unchanged", { contentDigest, after: after(number) })),
    );
    await updateBookings(pool, [{ ...key, state: after(1_100), revision: 1, newContent: "kept" }]);
    const identity = { bookingId: randomUUID(), bookingKey: bookingKey("acme", "trip", "TRIP-2") };
    const other = { ...key, reference: "TRIP-2", ...identity };
    const place = { eventId: eventId(2_000), sequence: start + 2_000_000_000, lastSequence: start + 2_000_000_000 };
    const at = new Date(place.sequence / 1_000);
    const content = { digest: contentDigest, eventId: place.eventId, newestKeylessSequence: place.sequence };
    const ofOther = { ...state(1), ...place, content, createdAt: at, updatedAt: at };
    await insertEvents(pool, [{ ...event(2_000, "create", "created", { contentDigest, after: ofOther }), ...other }]);
    const ofLog = { ...other, state: ofOther, revision: 1, newContent: "logged" as const };
    await insertBookings(pool, await readLogged(pool, [ofLog]));
    expect(await ok("bookings", "verify")).toBe("2 bookings with 1101 events: 0 bookings differ from their logs.\n");

    await pool.query("update booking_events set outcome = 'updated' where id = any($1)", [
      [51, 1_100, 2_000].map(eventId),
    ]);
    const { stdout } = await ops("bookings", "verify");
    for (const number of [51, 1_100]) expect(stdout).toContain(`Event ${eventId(number)} is recorded as updated`);
    expect(stdout).toContain("2 bookings with 1101 events: 2 bookings differ from their logs.");
  });

  test("compares a booking that is older than the log from where the log begins", async () => {
    await insertHistory(1);
    const hour = 3_600;
    const later = (number: number, digest: string) => {
      const place = { eventId: eventId(number), sequence: start + number * 1_000_000, lastSequence: 0 };
      const content = { digest, eventId: eventId(number), newestKeylessSequence: place.sequence };
      const at = new Date(place.sequence / 1_000);
      return { ...state(1), ...place, lastSequence: place.sequence, content, updatedAt: at };
    };
    const [third, last] = [later(100 * hour, "03".repeat(16)), later(200 * hour, "04".repeat(16))];
    await insertEvents(pool, [
      event(100 * hour, "update", "updated", { contentDigest: third.content.digest, after: third }),
      event(200 * hour, "update", "updated", { contentDigest: last.content.digest, after: last }),
    ]);
    const ofLog = { ...key, state: last, revision: 3, newContent: "logged" as const };
    await updateBookings(pool, await readLogged(pool, [ofLog]));
    await pool.query("delete from booking_events where id = any($1)", [[eventId(1), eventId(2)]]);
    expect((await ops("bookings", "verify")).exitCode).toBe(1);
    await pool.query("update log_retention set horizon = '2026-11-20T01:00Z'");
    expect(await ok("bookings", "verify")).toBe(
      "1 bookings with 2 events: 0 bookings differ from their logs.\n" +
        "1 bookings are older than the log, and were compared from there.\n",
    );
    await pool.query("update booking_events set outcome = 'unchanged' where id = $1", [eventId(200 * hour)]);
    expect((await ops("bookings", "verify")).stdout).toContain("is recorded as unchanged, but the fold says updated.");
    await pool.query("update log_retention set horizon = null");
  });

  test("finds no difference in a deleted booking whose content is older than the log", async () => {
    await insertHistory(1);
    const hour = 3_600;
    const deleted = (number: number): BookingState => {
      const at = new Date((start + number * 1_000_000) / 1_000);
      const place = { eventId: eventId(number), sequence: at.getTime() * 1_000, lastSequence: at.getTime() * 1_000 };
      return { ...state(1), ...place, state: "deleted", updatedAt: at, deletedAt: at };
    };
    const first = deleted(100 * hour);
    const last = { ...first, lastSequence: start + 200 * hour * 1_000_000 };
    await insertEvents(pool, [
      event(100 * hour, "delete", "deleted", { after: first }),
      event(200 * hour, "delete", "unchanged", { after: last }),
    ]);
    expect(await verifyWithoutFirstEvents(last, 2)).toContain(
      "1 bookings with 2 events: 0 bookings differ from their logs.",
    );
  });

  test("finds no difference in a booking that an event older than the log has decided", async () => {
    await insertHistory(1);
    const place = start + 360_000 * 1_000_000;
    const content = { digest: contentDigest, eventId: eventId(360_000), newestKeylessSequence: place };
    const after = { ...state(1), content, lastSequence: place };
    await insertEvents(pool, [event(360_000, "update", "unchanged", { contentDigest, after })]);
    expect(await verifyWithoutFirstEvents(after, 1)).toContain(
      "1 bookings with 1 events: 0 bookings differ from their logs.",
    );
  });

  test("prints the differences and no personal data, and fails", async () => {
    await insertHistory(2);
    await pool.query("update booking_events set outcome = 'updated' where id = $1", [eventId(2)]);
    await pool.query("update booking_events set state_after = 'deleted' where id = $1", [eventId(1)]);
    const { exitCode, stdout } = await ops("bookings", "verify", "acme");
    expect(exitCode).toBe(1);
    expect(stdout).toBe(
      [
        "Booking TRIP-1 of acme",
        `  The state after event ${eventId(1)} differs from the fold.`,
        `  Event ${eventId(2)} is recorded as updated, but the fold says unchanged.`,
        `  The booking is active by event ${eventId(2)}, but the fold says active by event ${eventId(1)}.`,
        "  The booking's updatedAt differs from the fold.",
        "1 bookings with 2 events: 1 bookings differ from their logs.",
        "",
      ].join("\n"),
    );
  });

  test("names events whose idempotency keys were misjudged", async () => {
    await insertHistory(1);
    const keyed = (number: number, more: Partial<EventToInsert>) =>
      event(number, "update", "duplicate", { idempotencyKey: "k-1", duplicateOf: eventId(1), contentDigest, ...more });
    const other = hash("sha256", "other", "hex");
    await insertEvents(pool, [
      keyed(3, {}),
      keyed(4, { duplicateOf: eventId(3) }),
      keyed(5, { contentDigest: other, duplicateOf: eventId(3) }),
      // From a release in which keys belonged to partners.
      keyed(6, { contentDigest: "00".repeat(32), duplicateOf: eventId(3), warnings: ["key-reused"] }),
    ]);
    const { stdout } = await ops("bookings", "verify", "acme");
    expect(stdout.split("\n").slice(0, 3).toSorted()).toEqual([
      `  Event ${eventId(3)} is recorded as a duplicate or a reuse of a key, but no earlier event has its key.`,
      `  Event ${eventId(5)} reuses the idempotency key of an earlier event, but has no warning.`,
      "Booking TRIP-1 of acme",
    ]);
  });

  test("says so if there is no such booking", async () => {
    expect(await ops("bookings", "verify", "acme", "TRIP-9")).toMatchObject({ exitCode: 1 });
    await insertHistory(1);
    expect(await ops("bookings", "verify", "acmee")).toEqual({
      exitCode: 1,
      stdout: "",
      stderr: "Partner acmee has no bookings. See which partners there are: ops partners list\n",
    });
  });
});

describe("bookings show", () => {
  test("shows the state, the trip and the history, and no personal data", async () => {
    await insertBooking("active");
    await insertEvents(pool, [
      event(1, "create", "created"),
      event(2, "update", "updated"),
      event(3, "create", "created", { reference: "TRIP-2" }),
    ]);
    expect(await ok("bookings", "show", "acme", "TRIP-1")).toBe(
      [
        "Booking TRIP-1 of acme: active",
        "",
        "  Created      2026-11-20T00:00:01Z",
        "  Updated      2026-11-20T00:00:02Z",
        "  Destination  Lisbon, Portugal (LIS)",
        "  From         LHR, flight XX1234",
        "  Arrival      2027-06-14",
        "  Content      9 fields, shown with --payload",
        "  Queue        not looked at: REDIS_URL is not set",
        "",
        "RECEIVED              KIND    OUTCOME  EVENT ID                              SEQUENCE          WHY",
        `2026-11-20T00:00:01Z  create  created  ${eventId(1)}  1795132801000000  There was no booking.`,
        `2026-11-20T00:00:02Z  update  updated  ${eventId(2)}  1795132802000000  The booking had other content.`,
        "",
      ].join("\n"),
    );
    expect(await ok("bookings", "show", "acme", "TRIP-1", "--payload")).toContain(guest);
  });

  test("--json has the trip, the events and, only on request, the payload", async () => {
    await insertBooking("deleted");
    await insertEvents(pool, [event(1, "create", "created"), event(2, "delete", "deleted")]);
    const json = await ok("bookings", "show", "acme", "TRIP-1", "--json");
    const shown = JSON.parse(json);
    expect(shown).toMatchObject({
      partner: "acme",
      reference: "TRIP-1",
      state: "deleted",
      sequence: start,
      createdAt: "2026-11-20T00:00:01.000Z",
      updatedAt: "2026-11-20T00:00:02.500Z",
      deletedAt: "2026-11-20T00:00:03.000Z",
      fieldCount: 9,
      events: [
        { id: eventId(1), kind: "create", outcome: "created", receivedAt: "2026-11-20T00:00:01.000Z" },
        { id: eventId(2), kind: "delete", outcome: "deleted" },
      ],
    });
    expect(shown.trip).toEqual({
      consumerTripDestinationName: "Lisbon",
      consumerTripDestinationCountryName: "Portugal",
      consumerTripDestinationAirportCode: "LIS",
      consumerTripDepartureAirportCode: "LHR",
      consumerTripDepartureFlightNumber: "XX1234",
      consumerTripArrivalDate: "2027-06-14",
    });
    expect(json).not.toContain("Canary");
    expect(JSON.parse(await ok("bookings", "show", "acme", "TRIP-1", "--json", "--payload")).payload).toEqual(payload);
  });

  test("shows the newest events, says how many are earlier, and shows those on request", async () => {
    await insertBooking("active");
    const numbers = Array.from({ length: 53 }, (_, index) => index + 1);
    await insertEvents(
      pool,
      numbers.map((number) =>
        number % 3 === 0
          ? event(number, "update", "duplicate", { duplicateOf: eventId(1) })
          : event(number, "update", "updated"),
      ),
    );
    const show = async (...more: string[]) => {
      const { exitCode, stdout, stderr } = await ops("bookings", "show", "acme", "TRIP-1", "--json", ...more);
      expect(exitCode).toBe(0);
      const { events, earlierEvents } = JSON.parse(stdout);
      return {
        stderr,
        earlierEvents,
        found: events.map(({ id }: EventToInsert) => numbers.find((n) => eventId(n) === id)),
      };
    };
    const moreBefore = (id: string, count: number) =>
      `There are ${count} earlier events. Show them with --before ${id}.\n`;
    expect(await show()).toEqual({
      found: numbers.slice(3),
      earlierEvents: 3,
      stderr: moreBefore(eventId(4), 3),
    });
    expect(await show("--before", eventId(4), "--limit", "2")).toEqual({
      found: [2, 3],
      earlierEvents: 1,
      stderr: moreBefore(eventId(2), 1),
    });
    expect(await show("--limit", "1000")).toEqual({ found: numbers, earlierEvents: 0, stderr: "" });
    const inWords = await ops("bookings", "show", "acme", "TRIP-1", "--limit", "1");
    expect(inWords).toMatchObject({ exitCode: 0, stderr: moreBefore(eventId(53), 52) });
  });

  test("shows which events have warnings", async () => {
    await insertBooking("active");
    await insertEvents(pool, [
      event(1, "create", "created"),
      event(2, "update", "updated", { idempotencyKey: "k", warnings: ["key-reused"] }),
    ]);
    const lines = (await ok("bookings", "show", "acme", "TRIP-1")).split("\n");
    expect(lines.find((line) => line.startsWith("RECEIVED"))).toMatch(/ WARNINGS$/);
    expect(lines.find((line) => line.includes(eventId(2)))).toMatch(/ key-reused$/);
    expect(lines.find((line) => line.includes(eventId(1)))).not.toContain("key-reused");
  });

  test("a booking that only had a delete has no content", async () => {
    await insertBooking("deleted", null, "GONE");
    expect(await ok("bookings", "show", "acme", "GONE")).toMatch(/Content {2}none, since no create or update/);
  });

  test("of a trip and a consumer with the same reference, asks which one, and shows that one", async () => {
    await insertBooking("active", payload, "N1");
    await insertBooking("deleted", payload, "N1", "consumer");
    await insertEvents(pool, [
      event(1, "create", "created", { reference: "N1" }),
      event(2, "delete", "deleted", { reference: "N1", referenceKind: "consumer" }),
    ]);
    expect(await ops("bookings", "show", "acme", "N1")).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("--reference-kind trip or --reference-kind consumer"),
    });
    const shown = await ok("bookings", "show", "acme", "N1", "--reference-kind", "consumer");
    expect(shown).toContain("Booking N1 (the consumer's) of acme: deleted");
    expect(shown).toContain(eventId(2));
    expect(shown).not.toContain(eventId(1));
    const json = await ok("bookings", "show", "acme", "N1", "--reference-kind", "trip", "--json");
    expect(JSON.parse(json)).toMatchObject({ referenceKind: "trip", state: "active", events: [{ id: eventId(1) }] });
  });

  test("of an unknown booking fails with a sentence", async () => {
    const { exitCode, stdout, stderr } = await ops("bookings", "show", "acme", "TRIP-1");
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
    expect(stderr).toMatch(/^Partner acme has no booking TRIP-1\..*\n$/);
  });
});

describe("migrate", () => {
  test("says if there is nothing to do", async () => {
    expect(await ok("migrate")).toBe("Nothing to apply: the schema is up to date.\n");
  });

  test("names the migrations of a new database, which the other commands need", async () => {
    const name = `ops_${randomUUID().replaceAll("-", "")}`;
    const environment = { DATABASE_URL: Object.assign(new URL(url), { pathname: `/${name}` }).href };
    await execute(url, `create database ${name}`);
    try {
      const before = await runOps(["events", "list"], { environment });
      expect(before).toMatchObject({ exitCode: 1, stdout: "" });
      expect(before.stderr).toMatch(/has not been migrated.*ops migrate\n$/);
      const migrated = await runOps(["migrate"], { environment });
      expect(migrated).toMatchObject({ exitCode: 0, stderr: "" });
      expect(migrated.stdout).toMatch(/^Applied 0001_.*\n.*The schema is up to date\.\n$/s);
      expect((await runOps(["events", "list"], { environment })).exitCode).toBe(0);
    } finally {
      await execute(url, `drop database ${name}`);
    }
  });

  test("refuses a schema of a newer release", async () => {
    await pool.query("insert into schema_migrations (name, digest, allows_older) values ('9999_newer', '00', false)");
    try {
      const { exitCode, stderr } = await ops("migrate");
      expect(exitCode).toBe(1);
      expect(stderr).toMatch(
        /^The database has been migrated by a newer version of this program \(9999_newer\)\..*\n$/,
      );
    } finally {
      await pool.query("delete from schema_migrations where name = '9999_newer'");
    }
  });
});

describe("if the database can't be used", () => {
  const commands = ["events list", "bookings show acme TRIP-1", "migrate"];

  test.each(commands)("%s says that DATABASE_URL is missing", async (command) => {
    const { exitCode, stdout, stderr } = await runOps(command.split(" "));
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
    expect(stderr).toMatch(/DATABASE_URL is required/);
  });

  test.each(commands)("%s never shows the password", async (command) => {
    const wrong = Object.assign(new URL(url), { password: "canary-password" });
    const nowhere = new URL("postgres://ops:canary-password@127.0.0.1:1/x");
    for (const url of [wrong, nowhere]) {
      const { exitCode, stdout, stderr } = await spawnOps(command.split(" "), { DATABASE_URL: url.href });
      expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
      expect(stderr).toMatch(/^PostgreSQL at 127\.0\.0\.1:\d+ .*\n$/);
      expect(stderr).not.toContain("canary");
    }
  });

  test("commands that don't need it don't ask for it", async () => {
    const { exitCode, stdout } = await runOps(["--help"]);
    expect(exitCode).toBe(0);
    expect(stdout).toContain("Usage: ops");
  });
});

test("a reader that closes the pipe ends the command quietly", async () => {
  await insertEvents(
    pool,
    Array.from({ length: 1_000 }, (_, number) => event(number, "create", "created", { reference: "x".repeat(500) })),
  );
  const main = fileURLToPath(new URL("./main.ts", import.meta.url));
  const command = `"${process.execPath}" --conditions=@booking-events/source "${main}" events list --json --limit 1000`;
  const child = spawn("bash", ["-c", `set -o pipefail; ${command} | head -n 1`], {
    env: { ...process.env, DATABASE_URL: url },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  expect({ stdout, stderr, exitCode: child.exitCode }).toEqual({ stdout: "[\n", stderr: "", exitCode: 0 });
});

// A device of Linux on which no write succeeds.
test.skipIf(!existsSync("/dev/full"))(
  "output that can't be written is one sentence, which says what to do",
  async () => {
    const folder = await mkdtemp(join(tmpdir(), "booking-events-ops-"));
    const full = openSync("/dev/full", "w");
    try {
      const PARTNERS_FILE = join(folder, "partners.json");
      const ran = await spawnOps(["partners", "add", "acme", "--name", "Acme"], { PARTNERS_FILE }, full);
      expect(ran).toMatchObject({
        exitCode: 1,
        stderr: expect.stringMatching(/\nThe output could not be [^\n]*ENOSPC[^\n]*\n$/),
      });
    } finally {
      closeSync(full);
      await rm(folder, { recursive: true });
    }
  },
);
