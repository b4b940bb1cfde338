import { waitFor } from "@booking-events/harness";
import { sampleEvent, sampleEventId } from "@booking-events/harness/sample-event";
import { createTestDatabase, untilBlocked, useTestDatabase } from "@booking-events/harness/test-database";
import type { EventEnvelope, EventKind } from "@booking-events/schema";
import { createPool, findEvent, findRecordedEvent, NotBegun, openDigestKey } from "@booking-events/store";
import type { Pool } from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { applyEvents } from "./apply-events.ts";
import type { RecordedWarning } from "./plan-batch.ts";

const options = { duplicateWindowMs: 72 * 3_600_000 };
const start = Date.UTC(2026, 10, 20) * 1_000;

const { pool, url } = useTestDatabase({ maxConnections: 10 });

beforeEach(() => pool.query("truncate bookings, booking_events, booking_changes, dead_letters"));

/** Events are numbered in the order of receipt. The id contains the number. */
function event(number: number, kind: EventKind, content: string, more: Partial<EventEnvelope> = {}): EventEnvelope {
  const payload = { consumerTripPartnerExternalReference: "TRIP-1", ...(kind === "delete" ? {} : { note: content }) };
  return sampleEvent(number, { kind, payload, ...more });
}

async function apply(...events: EventEnvelope[]): Promise<string> {
  const outcomes = await applyEvents(pool, events, options);
  // Events that were left out, because another transaction had locked their booking, are applied alone.
  for (const event of events.filter(({ eventId }) => !outcomes.has(eventId))) {
    const [own] = await applyEvents(pool, [event], { ...options, isAlone: true });
    if (own !== undefined) outcomes.set(...own);
  }
  return events.map(({ eventId }) => outcomes.get(eventId)).join(", ");
}

async function readBookings(): Promise<string[]> {
  const { rows } = await pool.query(
    "select reference, state, payload ->> 'note' as note, event_id from bookings order by partner, reference",
  );
  return rows.map(
    ({ reference, state, note, event_id }) => `${reference} ${state} ${note} by ${Number(event_id.slice(-4))}`,
  );
}

async function readChanges(): Promise<string[]> {
  const { rows } = await pool.query("select reference, change, event_id from booking_changes order by id");
  return rows.map(({ reference, change, event_id }) => `${reference} ${change} by ${Number(event_id.slice(-4))}`);
}

/** "3 duplicate of 1", "4 updated key-reused" */
async function readLog(): Promise<string[]> {
  const { rows } = await pool.query("select id, outcome, duplicate_of, warnings from booking_events order by sequence");
  return rows.map(({ id, outcome, duplicate_of, warnings }) =>
    [
      Number(id.slice(-4)),
      outcome,
      ...(duplicate_of === null ? [] : ["of", Number(duplicate_of.slice(-4))]),
      ...warnings,
    ].join(" "),
  );
}

describe("in the order of receipt", () => {
  test("an event, its booking and its change are written together", async () => {
    expect(await apply(event(1, "create", "A"))).toBe("created");
    const { rows } = await pool.query("select * from bookings");
    expect(rows).toMatchObject([
      {
        partner: "acme",
        reference: "TRIP-1",
        state: "active",
        sequence: start + 1_000_000,
        payload: { consumerTripPartnerExternalReference: "TRIP-1", note: "A" },
        created_at: new Date("2026-11-20T00:00:01Z"),
        updated_at: new Date("2026-11-20T00:00:01Z"),
        deleted_at: null,
      },
    ]);
    expect(await readLog()).toEqual(["1 created"]);
    expect(await readChanges()).toEqual(["TRIP-1 created by 1"]);
  });

  test("the log says by which secret an event came, if ingest said so", async () => {
    await apply({ ...event(1, "create", "A"), secretId: "s1" });
    await apply(event(2, "update", "B"));
    const { rows } = await pool.query("select secret_id from booking_events order by sequence");
    expect(rows).toEqual([{ secret_id: "s1" }, { secret_id: null }]);
  });

  test("the feed has one change for each event that changed the booking", async () => {
    await apply(event(1, "create", "A"));
    await apply(event(2, "update", "B"));
    await apply(event(3, "update", "B"));
    await apply(event(4, "delete", ""));
    await apply(event(5, "create", "A"));
    await apply(event(6, "update", "C"));
    expect(await readLog()).toEqual([
      "1 created",
      "2 updated",
      "3 unchanged",
      "4 deleted",
      "5 duplicate",
      "6 recreated",
    ]);
    expect(await readChanges()).toEqual(
      ["created by 1", "updated by 2", "deleted by 4", "recreated by 6"].map((x) => `TRIP-1 ${x}`),
    );
    expect(await readBookings()).toEqual(["TRIP-1 active C by 6"]);
  });

  test("a batch has the same result as its events one by one", async () => {
    const batch = [event(1, "create", "A"), event(2, "update", "B"), event(3, "delete", ""), event(4, "create", "A")];
    expect(await apply(...batch)).toBe("created, updated, deleted, duplicate");
    expect(await readChanges()).toEqual(["TRIP-1 created by 1", "TRIP-1 updated by 2", "TRIP-1 deleted by 3"]);
    expect(await readBookings()).toEqual(["TRIP-1 deleted B by 3"]);
  });

  test("partners with the same reference have separate bookings", async () => {
    await apply(event(1, "create", "A"), event(2, "create", "B", { partner: "other" }));
    expect(await readBookings()).toEqual(["TRIP-1 active A by 1", "TRIP-1 active B by 2"]);
  });

  test("a booking can have a reference of 8,192 characters of 4 bytes each", async () => {
    const payload = { consumerPartnerExternalReference: "🧳".repeat(8_192) };
    expect(await apply(event(1, "create", "", { payload }))).toBe("created");
    expect(await apply(event(2, "delete", "", { payload }))).toBe("deleted");
  });

  test("the order of keys makes no difference, and unknown fields do", async () => {
    const reference = { consumerTripPartnerExternalReference: "TRIP-1" };
    await apply(event(1, "create", "", { payload: { ...reference, extra: { a: 1, b: [2] } } }));
    expect(await apply(event(2, "update", "", { payload: { extra: { b: [2], a: 1 }, ...reference } }))).toBe(
      "unchanged",
    );
    expect(await apply(event(3, "update", "", { payload: { ...reference, extra: { a: 1, b: [3] } } }))).toBe("updated");
  });
});

describe("delivered more than once", () => {
  test("the same event again changes nothing, and has the same outcome", async () => {
    expect(await apply(event(1, "create", "A"))).toBe("created");
    expect(await apply(event(1, "create", "A"), event(1, "create", "A"))).toBe("created, created");
    expect(await readLog()).toEqual(["1 created"]);
    expect(await readChanges()).toEqual(["TRIP-1 created by 1"]);
  });

  test("the same first event on eight workers at the same time is applied once", async () => {
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => apply(event(1, "create", "A"))));
    expect(outcomes).toEqual(Array.from({ length: 8 }, () => "created"));
    expect(await readChanges()).toEqual(["TRIP-1 created by 1"]);
  });

  test("the same first events in concurrent batches are applied once each, without a deadlock", async () => {
    const events = Array.from({ length: 40 }, (_, index) => {
      // Ids are in another order than sequences and bookings, so only a common order of locks prevents deadlocks.
      const reference = { consumerTripPartnerExternalReference: `TRIP-${(index * 7) % 40}` };
      return event(index + 1, "create", "", { eventId: sampleEventId((index * 17) % 40), payload: reference });
    });
    const batches = Array.from({ length: 16 }, (_, worker) => events.slice(worker, worker + 25).reverse());
    await Promise.all(batches.map((batch) => apply(...batch)));
    const { rows } = await pool.query(
      `select (select count(*)::int from booking_events) as events,
         (select count(*)::int from booking_changes) as changes`,
    );
    expect(rows).toEqual([{ events: 40, changes: 40 }]);
    expect(await readBookings()).toHaveLength(40);
  });

  test("two concurrent first events of one booking are both applied", async () => {
    await Promise.all([apply(event(1, "create", "A")), apply(event(2, "update", "B"))]);
    expect(await readBookings()).toEqual(["TRIP-1 active B by 2"]);
    expect((await readLog()).length).toBe(2);
  });
});

describe("concurrent batches that take the same locks in crossing order", () => {
  let crossing: Awaited<ReturnType<typeof createTestDatabase>>;
  let workers: Pool;

  beforeEach(async () => {
    crossing = await createTestDatabase();
    workers = createPool({ databaseUrl: crossing.url, applicationName: "test", maxConnections: 4, onError: () => {} });
  });

  afterEach(() => crossing.drop());

  /**
   * Applies the batches concurrently. Each transaction stops in its insert into the table, at TRIP-2 or at a row that
   * another one has inserted, and goes on when all have stopped.
   */
  async function applyCrossing(table: "booking_events" | "bookings", batches: EventEnvelope[][]): Promise<void> {
    await workers.query(`
      create function stop_at_trip_2() returns trigger language plpgsql as $$
      begin
        if new.reference = 'TRIP-2' then perform pg_advisory_xact_lock_shared(2); end if;
        return new;
      end $$;
      create trigger stop before insert on ${table} for each row execute function stop_at_trip_2();
    `);
    const holder = await workers.connect();
    await holder.query("select pg_advisory_lock(2)");
    const applying = batches.map((batch) => applyEvents(workers, batch, options));
    await untilBlocked(holder, batches.length);
    await holder.query("select pg_advisory_unlock(2)");
    holder.release();
    await Promise.all(applying);
  }

  /** PostgreSQL counts a deadlock when its connection ends. A batch hides deadlocks, since it is tried again. */
  async function endAndCountDeadlocks(): Promise<number> {
    await workers.end();
    return waitFor(async () => {
      const { rows } = await pool.query<{ connections: number; deadlocks: number }>(
        "select numbackends as connections, deadlocks::int from pg_stat_database where datname = $1",
        [new URL(crossing.url).pathname.slice(1)],
      );
      expect(rows[0]?.connections).toBe(0);
      return rows[0]?.deadlocks ?? Number.NaN;
    });
  }

  const of = (trip: number, note: string) => ({
    payload: { consumerTripPartnerExternalReference: `TRIP-${trip}`, note },
  });

  test("wait for each other if both have the same events, without a deadlock", async () => {
    const events = [1, 2, 3].flatMap((trip) => [
      event(10 * trip, "create", "", of(trip, "A")),
      event(10 * trip + 1, "update", "", of(trip, "B")),
    ]);
    await applyCrossing("booking_events", [events, events.toReversed()]);
    const { rows } = await workers.query("select count(*)::int as events from booking_events");
    expect(rows).toEqual([{ events: 6 }]);
    expect(await endAndCountDeadlocks()).toBe(0);
  });

  test("wait for each other if both have the first events of the same bookings, without a deadlock", async () => {
    // The order of the bookings' keys is neither of the two orders.
    const trips = [1, 2, 3, 4, 5, 6, 7, 8];
    const upwards = trips.flatMap((trip) => [
      event(10 * trip, "create", "", of(trip, "A")),
      event(10 * trip + 1, "update", "", of(trip, "B")),
    ]);
    const downwards = trips.toReversed().map((trip, place) => event(1_000 + place, "update", "", of(trip, "C")));
    await applyCrossing("bookings", [upwards, downwards]);
    const { rows } = await workers.query("select distinct state, payload ->> 'note' as note from bookings");
    expect(rows).toEqual([{ state: "active", note: "C" }]);
    expect(await endAndCountDeadlocks()).toBe(0);
  });
});

describe("with idempotency keys", () => {
  const key = { idempotencyKey: "k-1" };

  test("the second event with the same key, kind and content is a duplicate, and changes nothing", async () => {
    await apply(event(1, "create", "A", key), event(2, "update", "B"));
    expect(await apply(event(3, "create", "A", key))).toBe("duplicate");
    expect(await readLog()).toEqual(["1 created", "2 updated", "3 duplicate of 1"]);
    expect(await readBookings()).toEqual(["TRIP-1 active B by 2"]);
  });

  test("so is one in the same batch", async () => {
    const events = [event(1, "create", "A", key), event(2, "update", "B"), event(3, "create", "A", key)];
    expect(await apply(...events)).toBe("created, updated, duplicate");
    expect(await readBookings()).toEqual(["TRIP-1 active B by 2"]);
  });

  test("an event with the same key and another content or kind counts, with a warning", async () => {
    await apply(event(1, "create", "A", key));
    expect(await apply(event(2, "create", "B", key))).toBe("updated");
    expect(await apply(event(3, "update", "A", key), event(4, "delete", "", key))).toBe("updated, deleted");
    expect(await apply(event(5, "create", "B", key))).toBe("duplicate");
    expect(await readLog()).toEqual([
      "1 created",
      "2 updated key-reused replaced",
      "3 updated key-reused",
      "4 deleted key-reused",
      "5 duplicate of 2",
    ]);
  });

  test("content is compared canonically, and another field makes another content", async () => {
    const payload = { consumerTripPartnerExternalReference: "TRIP-1", seats: 100, note: "A" };
    const reordered = { note: "A", seats: 1.0e2, consumerTripPartnerExternalReference: "TRIP-1" };
    await apply(event(1, "create", "", { ...key, payload }));
    expect(await apply(event(2, "create", "", { ...key, payload: reordered }))).toBe("duplicate");
    expect(await apply(event(3, "create", "", { ...key, payload: { ...payload, more: true } }))).toBe("updated");
  });

  test("partners and bookings don't share keys", async () => {
    const trip2 = { consumerTripPartnerExternalReference: "TRIP-2", note: "A" };
    await apply(event(1, "create", "A", key));
    expect(await apply(event(2, "create", "A", { ...key, partner: "other" }))).toBe("created");
    expect(await apply(event(3, "create", "", { ...key, payload: trip2 }))).toBe("created");
    expect(await readLog()).toEqual(["1 created", "2 created", "3 created"]);
  });

  test("a retry that is applied before its original yields to it, and the booking does not change", async () => {
    await apply(event(1, "create", "A"));
    expect(await apply(event(3, "update", "B", key))).toBe("updated");
    expect(await apply(event(2, "update", "B", key))).toBe("updated");
    expect(await readLog()).toEqual(["1 created", "2 updated", "3 duplicate of 2"]);
    expect(await readBookings()).toEqual(["TRIP-1 active B by 2"]);
    expect(await readChanges()).toEqual(["TRIP-1 created by 1", "TRIP-1 updated by 3"]);
  });

  test("a duplicate names the event that counts, though the one that it was compared with is a duplicate now", async () => {
    await apply(event(3, "create", "A", key), event(4, "create", "A", key));
    for (const original of [2, 1]) {
      await apply(event(original, "create", "A", key));
      for (const duplicate of [3, 4]) {
        const id = sampleEventId(duplicate);
        const receipt = await findRecordedEvent(pool, "acme", id);
        expect(receipt).toMatchObject({ outcome: "duplicate", duplicateOf: sampleEventId(original) });
        expect(await findEvent(pool, id)).toMatchObject({ duplicateOf: sampleEventId(original) });
      }
    }
  });

  test("an original that arrives late undoes what its retry did", async () => {
    await apply(event(2, "update", "B"), event(3, "update", "A", key));
    expect(await readBookings()).toEqual(["TRIP-1 active A by 3"]);
    expect(await apply(event(1, "update", "A", key))).toBe("superseded");
    expect(await readLog()).toEqual(["1 superseded", "2 updated", "3 duplicate of 1"]);
    expect(await readBookings()).toEqual(["TRIP-1 active B by 2"]);
    expect(await readChanges()).toEqual(["TRIP-1 created by 2", "TRIP-1 updated by 3", "TRIP-1 updated by 2"]);
  });

  test("the warning belongs to the event that used the key later, whatever the order of arrival", async () => {
    await apply(event(2, "create", "B", key));
    expect(await readLog()).toEqual(["2 created"]);
    await apply(event(3, "create", "A", key));
    expect(await readLog()).toEqual(["2 created", "3 updated key-reused replaced"]);
    await apply(event(1, "create", "A", key));
    expect(await readLog()).toEqual(["1 superseded", "2 updated replaced key-reused", "3 duplicate of 1"]);
  });

  test("what ingest has warned of stays with the event, beside what shows when it is applied", async () => {
    const warnings = ["similar-name", "unreadable-phone"];
    await apply({ ...event(2, "create", "B", key), warnings });
    await apply({ ...event(3, "create", "A", key), warnings });
    expect(await readLog()).toEqual([
      ...["2 created similar-name unreadable-phone", "3 updated similar-name unreadable-phone key-reused replaced"],
    ]);
    await apply(event(1, "create", "A", key));
    expect(await readLog()).toEqual([
      ...["1 superseded", "2 updated similar-name unreadable-phone replaced key-reused"],
      "3 duplicate of 1 similar-name unreadable-phone",
    ]);
  });

  test("each warning is reported once, when it is in the log", async () => {
    const warnings: unknown[] = [];
    const onWarning = (warning: RecordedWarning) => warnings.push(warning);
    await applyEvents(pool, [event(2, "create", "B", key)], { ...options, onWarning });
    expect(warnings).toEqual([]);
    await applyEvents(pool, [event(1, "create", "A", key)], { ...options, onWarning });
    await applyEvents(pool, [event(3, "delete", "", key)], { ...options, onWarning });
    await applyEvents(pool, [event(3, "delete", "", key)], { ...options, onWarning });
    expect(warnings).toEqual([
      { eventId: sampleEventId(2), partner: "acme", kind: "create", code: "key-reused" },
      { eventId: sampleEventId(3), partner: "acme", kind: "delete", code: "key-reused" },
    ]);
  });

  test("of events with the same key on four concurrent workers, one counts", async () => {
    const events = Array.from({ length: 12 }, (_, index) => event(index + 1, "create", "A", key));
    const batches = [0, 1, 2, 3].map((worker) => events.filter((_, index) => index % 4 === worker).reverse());
    await Promise.all(batches.map((batch) => apply(...batch)));
    const log = await readLog();
    expect(log[0]).toBe("1 created");
    expect(log.slice(1).every((line) => line.includes("duplicate of"))).toBe(true);
    expect(await readBookings()).toEqual(["TRIP-1 active A by 1"]);
  });
});

describe("what the sender should know of the booking before", () => {
  test("is recorded and reported: a create replaced another one, or a delete found nothing", async () => {
    const warnings: string[] = [];
    const onWarning = ({ code, eventId }: RecordedWarning) => warnings.push(`${Number(eventId.slice(-4))} ${code}`);
    const events = [
      event(1, "delete", ""),
      event(2, "delete", ""),
      event(3, "create", "A"),
      event(4, "create", "A"),
      event(5, "create", "B"),
      event(6, "update", "C"),
      event(7, "delete", ""),
      event(8, "delete", ""),
      event(9, "create", "D"),
    ];
    await applyEvents(pool, events, { ...options, onWarning });
    expect(await readLog()).toEqual([
      ...["1 deleted booking-unknown", "2 unchanged booking-unknown", "3 recreated", "4 unchanged"],
      ...["5 updated replaced", "6 updated", "7 deleted", "8 unchanged", "9 recreated"],
    ]);
    expect(warnings).toEqual(["1 booking-unknown", "2 booking-unknown", "5 replaced"]);
  });

  test("is corrected when a late event takes its place before it", async () => {
    await apply(event(3, "delete", ""));
    expect(await readLog()).toEqual(["3 deleted booking-unknown"]);
    await apply(event(1, "create", "A"));
    expect(await readLog()).toEqual(["1 superseded", "3 deleted"]);
    await apply(event(2, "create", "B"));
    expect(await readLog()).toEqual(["1 superseded", "2 superseded replaced", "3 deleted"]);
  });

  test("is corrected in a superseded event too", async () => {
    await apply(event(1, "create", "A"), event(4, "create", "B"));
    await apply(event(3, "create", "C"));
    expect(await readLog()).toEqual(["1 created", "3 superseded replaced", "4 updated replaced"]);
    await apply(event(2, "delete", ""));
    expect(await readLog()).toEqual(["1 created", "2 superseded", "3 superseded", "4 updated replaced"]);
  });
});

describe("references of trips and of consumers", () => {
  const trip = { consumerTripPartnerExternalReference: "N1" };
  const consumer = { consumerPartnerExternalReference: "N1" };

  test("are two namespaces, so the same text names two bookings", async () => {
    await apply(event(1, "create", "", { payload: trip }), event(2, "create", "", { payload: consumer }));
    expect(await apply(event(3, "delete", "", { payload: consumer }))).toBe("deleted");
    const { rows } = await pool.query(
      "select reference_kind, reference, state from bookings order by reference_kind desc",
    );
    expect(rows).toEqual([
      { reference_kind: "trip", reference: "N1", state: "active" },
      { reference_kind: "consumer", reference: "N1", state: "deleted" },
    ]);
    const changes = await pool.query("select reference_kind, change from booking_changes order by id");
    expect(changes.rows.map(({ reference_kind, change }) => `${reference_kind} ${change}`).toSorted()).toEqual([
      "consumer created",
      "consumer deleted",
      "trip created",
    ]);
  });

  test("an event with both belongs to the trip's booking", async () => {
    await apply(event(1, "create", "", { payload: { ...trip, consumerPartnerExternalReference: "C1" } }));
    expect(await apply(event(2, "delete", "", { payload: trip }))).toBe("deleted");
  });

  describe("a delete by the reference of a consumer", () => {
    const both = { ...trip, consumerPartnerExternalReference: "C1" };
    const deletion = event(9, "delete", "", { payload: { consumerPartnerExternalReference: "C1" } });

    test("who has a booking with a trip reference has a warning, and does not touch that booking", async () => {
      await apply(event(1, "create", "", { payload: both }));
      const warnings: unknown[] = [];
      await applyEvents(pool, [deletion], { ...options, onWarning: (warning) => warnings.push(warning) });
      expect(await readLog()).toEqual(["1 created", "9 deleted booking-unknown reference-kind"]);
      expect(await readBookings()).toEqual(["C1 deleted null by 9", "N1 active null by 1"]);
      expect(warnings).toEqual([
        { eventId: sampleEventId(9), partner: "acme", kind: "delete", code: "booking-unknown" },
        { eventId: sampleEventId(9), partner: "acme", kind: "delete", code: "reference-kind" },
      ]);
    });

    test("has the warning in the same batch as that booking, and after its delete", async () => {
      await apply(event(1, "create", "", { payload: both }), deletion);
      await apply(event(10, "delete", "", { payload: trip }));
      await apply(event(11, "delete", "", { payload: { consumerPartnerExternalReference: "C1" } }));
      expect(await readLog()).toEqual([
        "1 created",
        "9 deleted booking-unknown reference-kind",
        "10 deleted",
        "11 unchanged booking-unknown reference-kind",
      ]);
    });

    test("has no warning for another partner's or consumer's booking, or one that has left the consumer", async () => {
      await apply(
        event(1, "create", "", { payload: both, partner: "other" }),
        event(2, "create", "", { payload: { ...trip, consumerPartnerExternalReference: "C2" } }),
        event(3, "create", "", { payload: { consumerPartnerExternalReference: "C1" } }),
        event(4, "create", "", { payload: { ...both, consumerTripPartnerExternalReference: "N2" } }),
      );
      await apply(event(5, "update", "", { payload: { consumerTripPartnerExternalReference: "N2" } }));
      await apply(deletion);
      expect((await readLog()).at(-1)).toBe("9 deleted");
    });
  });

  test("don't share keys", async () => {
    const key = { idempotencyKey: "k-1" };
    await apply(
      event(1, "create", "", { payload: trip, ...key }),
      event(2, "create", "", { payload: consumer, ...key }),
    );
    expect(await readLog()).toEqual(["1 created", "2 created"]);
  });
});

describe("late events", () => {
  test("an event that arrives after a later one is superseded", async () => {
    await apply(event(2, "update", "B"));
    expect(await apply(event(1, "create", "A"))).toBe("superseded");
    expect(await readBookings()).toEqual(["TRIP-1 active B by 2"]);
  });

  test("an event that turns out to be the first one is in the feed, since the booking began earlier", async () => {
    await apply(event(5, "update", "B"));
    await apply(event(2, "create", "A"));
    await apply(event(3, "update", "C"));
    expect(await readChanges()).toEqual(["TRIP-1 created by 5", "TRIP-1 updated by 5"]);
    const { rows } = await pool.query("select created_at, revision from bookings");
    expect(rows).toEqual([{ created_at: new Date("2026-11-20T00:00:02Z"), revision: 2 }]);
  });

  test("a create before the delete is superseded, and an event after it recreates the booking", async () => {
    await apply(event(2, "delete", ""));
    expect(await apply(event(1, "create", "A"))).toBe("superseded");
    expect(await readBookings()).toEqual(["TRIP-1 deleted A by 2"]);
    expect(await apply(event(3, "update", "C"))).toBe("recreated");
  });

  test("a late event that changes the outcome of a later one corrects the booking and the feed", async () => {
    await apply(event(1, "create", "A"));
    expect(await apply(event(3, "create", "A"))).toBe("unchanged");
    // With B in between, the second create of A is a retry by the sender, which must not undo B.
    expect(await apply(event(2, "update", "B"))).toBe("updated");
    expect(await readLog()).toEqual(["1 created", "2 updated", "3 duplicate"]);
    expect(await readBookings()).toEqual(["TRIP-1 active B by 2"]);
    expect(await readChanges()).toEqual(["TRIP-1 created by 1", "TRIP-1 updated by 2"]);
  });

  test("a late event can let a logged event decide the booking's state", async () => {
    await apply(event(1, "create", "A"), event(2, "delete", ""), event(4, "update", "A"));
    expect(await readBookings()).toEqual(["TRIP-1 deleted A by 2"]);
    expect(await apply(event(3, "update", "B"))).toBe("superseded");
    expect(await readBookings()).toEqual(["TRIP-1 active A by 4"]);
    expect(await readLog()).toEqual(["1 created", "2 deleted", "3 superseded", "4 updated"]);
    expect(await readChanges()).toEqual(["created by 1", "deleted by 2", "recreated by 4"].map((x) => `TRIP-1 ${x}`));
  });

  test("late and new events may share a batch", async () => {
    await apply(event(2, "update", "B"));
    expect(await apply(event(3, "update", "C"), event(1, "create", "A"))).toBe("updated, superseded");
    expect(await readBookings()).toEqual(["TRIP-1 active C by 3"]);
    expect(await readChanges()).toEqual(["TRIP-1 created by 2", "TRIP-1 updated by 2", "TRIP-1 updated by 3"]);
  });
});

describe("a booking with a long history", () => {
  /** 3,000 updates. That is more than may be read while other bookings wait. */
  async function applyHistory(content: (number: number) => string): Promise<void> {
    const events = Array.from({ length: 3_000 }, (_, index) => event(2 * index + 1, "update", content(index)));
    for (let start = 0; start < events.length; start += 500)
      await applyEvents(pool, events.slice(start, start + 500), options);
  }

  test.each([2, 200, 5_000])("takes in an event that is %i places late", async (places) => {
    await applyHistory(String);
    const late = event(5_999 - places + 1, "update", "late");
    expect((await applyEvents(pool, [late], options)).get(late.eventId)).toBe("superseded");
    expect(await readBookings()).toEqual(["TRIP-1 active 2999 by 5999"]);
  });

  test("is left out of a transaction with others if it needs too much of it, and then applied alone", async () => {
    // All but the first repeat the content, so a late event before the second one changes all of their states.
    await applyHistory(() => "same");
    const late = event(2, "update", "late");
    const other = event(9_000, "create", "", { payload: { consumerTripPartnerExternalReference: "TRIP-2" } });
    expect([...(await applyEvents(pool, [late, other], options))]).toEqual([[other.eventId, "created"]]);
    expect([...(await applyEvents(pool, [late], { ...options, isAlone: true }))]).toEqual([
      [late.eventId, "superseded"],
    ]);
    expect(await readBookings()).toEqual(["TRIP-1 active same by 3", "TRIP-2 active null by 9000"]);
    const { rows } = await pool.query(
      "select outcome, count(*)::int from booking_events where reference = 'TRIP-1' group by 1 order by 2, 1",
    );
    expect(rows).toEqual([
      { outcome: "created", count: 1 },
      { outcome: "superseded", count: 1 },
      { outcome: "updated", count: 1 },
      { outcome: "unchanged", count: 2_998 },
    ]);
  });

  test("is left out with all of its events, including repetitions of a key", async () => {
    await applyHistory(() => "same");
    const key = { idempotencyKey: "k-1" };
    const events = [event(2, "update", "late", key), event(9_000, "update", "late", key)];
    expect([...(await applyEvents(pool, events, options))]).toEqual([]);
    expect([...(await applyEvents(pool, events, { ...options, isAlone: true })).values()]).toEqual([
      "superseded",
      "duplicate",
    ]);
    expect(await readBookings()).toEqual(["TRIP-1 active same by 3"]);
  });
});

test("two events with the same sequence are both applied, in the order of their ids", async () => {
  await apply(event(2, "update", "B"), event(3, "update", "C", { sequence: event(2, "update", "").sequence }));
  expect(await apply(event(1, "update", "A", { sequence: event(2, "update", "").sequence }))).toBe("superseded");
  expect(await readBookings()).toEqual(["TRIP-1 active C by 3"]);
});

test("a batch leaves out all bookings that need much of their history, on the same connection", async () => {
  const bookings = [1, 2, 3].map((number) => ({
    consumerTripPartnerExternalReference: `LONG-${number}`,
    note: "same",
  }));
  for (const [index, payload] of bookings.entries()) {
    const history = Array.from({ length: 2_100 }, (_, place) =>
      event(3 * place + 1, "update", "", { payload, eventId: sampleEventId(10_000 * (index + 1) + place) }),
    );
    for (let start = 0; start < history.length; start += 700)
      await applyEvents(pool, history.slice(start, start + 700), options);
  }
  const late = bookings.map((payload, index) =>
    event(2, "update", "", { payload: { ...payload, note: "late" }, eventId: sampleEventId(90_000 + index) }),
  );
  const digestKey = await openDigestKey(pool, undefined);
  let transactions = 0;
  const pids = new Set<number | undefined>();
  const counting = createPool({
    databaseUrl: url,
    applicationName: "test",
    maxConnections: 1,
    onError: () => {},
  });
  counting.on("acquire", (client) => {
    transactions += 1;
    pids.add((client as unknown as { processID?: number }).processID);
  });
  const other = event(9_000, "create", "", { payload: { consumerTripPartnerExternalReference: "TRIP-3" } });
  expect([...(await applyEvents(counting, [...late, other], { ...options, digestKey })).keys()]).toEqual([
    other.eventId,
  ]);
  await counting.end();
  expect({ transactions, connections: pids.size }).toEqual({ transactions: 2, connections: 1 });
});

describe("a booking that another transaction has locked", () => {
  test("is left out, and the other bookings of its batch are applied", async () => {
    await apply(event(1, "create", "A"));
    const holder = await pool.connect();
    try {
      await holder.query("begin");
      await holder.query("select from bookings for update");
      const other = event(3, "create", "", { payload: { consumerTripPartnerExternalReference: "TRIP-2" } });
      const outcomes = await applyEvents(pool, [event(2, "update", "B"), other], options);
      expect([...outcomes]).toEqual([[other.eventId, "created"]]);
    } finally {
      await holder.query("rollback");
      holder.release();
    }
    expect(await apply(event(2, "update", "B"))).toBe("updated");
  });

  test("is an outage if there is no connection to find out which bookings are locked", async () => {
    await apply(event(1, "create", "A"));
    const client = await pool.connect();
    try {
      await client.query("begin; select 1 from bookings for update");
      let connections = 0;
      const failing: Pool = Object.create(pool, {
        connect: {
          value(...args: []) {
            connections += 1;
            if (connections === 1) return pool.connect(...args);
            return Promise.reject(Object.assign(new Error("server login has been failing"), { code: "XX000" }));
          },
        },
      });
      await expect(applyEvents(failing, [event(2, "update", "B")], options)).rejects.toThrow(NotBegun);
    } finally {
      client.release(true);
    }
  });

  test("is waited for if it is applied alone", async () => {
    await apply(event(1, "create", "A"));
    const holder = await pool.connect();
    await holder.query("begin");
    await holder.query("select from bookings for update");
    const applying = applyEvents(pool, [event(2, "update", "B")], { ...options, isAlone: true });
    await untilBlocked(pool, 1);
    await holder.query("rollback");
    holder.release();
    expect([...(await applying).values()]).toEqual(["updated"]);
  });
});

describe("events with the same sequence are in the order of their ids", () => {
  const tied = { sequence: start, receivedAt: new Date(start / 1_000).toISOString() };
  const [first, second, third] = [
    event(1, "create", "A", tied),
    event(2, "update", "B", tied),
    event(3, "create", "A", tied),
  ] as const;

  test.each<[string, ...EventEnvelope[][]]>([
    ["delivered in that order", [first], [second], [third]],
    ["delivered in another order", [third], [first], [second]],
    ["delivered in reverse order", [third], [second], [first]],
    ["in one batch", [third, second, first]],
    ["some in a batch", [second], [third, first]],
    ["some in another batch", [first], [third, second]],
  ])("%s", async (_, ...batches) => {
    for (const batch of batches) await apply(...batch);
    // The third repeats the first.
    expect(await readBookings()).toEqual(["TRIP-1 active B by 2"]);
    const { rows } = await pool.query("select last_sequence from bookings");
    expect(rows).toEqual([{ last_sequence: start }]);
  });
});
