import { hash } from "node:crypto";
import { type FoldStep, foldEvents, toCanonicalJson } from "@booking-events/bookings";
import { sampleEventId } from "@booking-events/harness/sample-event";
import { useTestDatabase } from "@booking-events/harness/test-database";
import type { BookingPayload, EventEnvelope, EventKind } from "@booking-events/schema";
import { bookingKey, type DigestKey, openDigestKey } from "@booking-events/store";
import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { applyEvents } from "./apply-events.ts";
import { toIncomingEvent } from "./incoming-event.ts";

/** Every night tries more scenarios: see `vitest.nightly.ts`. */
const numRuns = Number(process.env["CONVERGENCE_RUNS"] ?? 10);
const options = { duplicateWindowMs: 72 * 3_600_000 };
const start = Date.UTC(2026, 0, 1);

const { pool } = useTestDatabase({ maxConnections: 8 });
let digestKey: DigestKey;
beforeAll(async () => {
  digestKey = await openDigestKey(pool, undefined);
});

interface Note {
  partner: string;
  /** T1 is a trip's reference. C:T1 is the same reference of a consumer. */
  booking: string;
  kind: EventKind;
  content: string;
  key: string | null;
  hoursLater: number;
  /** The event has the same sequence as the one before it, so their ids decide. */
  isTied: boolean;
}

/**
 * There are few partners, bookings, contents and keys, so events and keys meet. The gaps are around the window of 72 h.
 */
const note: fc.Arbitrary<Note> = fc.record({
  partner: fc.constantFrom("acme", "acme", "acme", "zenith"),
  booking: fc.constantFrom("T1", "T1", "T2", "C:T1"),
  kind: fc.constantFrom<EventKind>("create", "create", "update", "update", "delete"),
  content: fc.constantFrom("A", "B", "C"),
  key: fc.option(fc.constantFrom("k1", "k1", "k2"), { freq: 4 }),
  hoursLater: fc.constantFrom(0, 0, 1, 20, 80),
  isTied: fc.boolean(),
});

interface Scenario {
  notes: Note[];
  /** Which event each delivery has, and which batch it joins. */
  deliveries: { event: number; batch: number }[];
  workers: number;
}

const scenario: fc.Arbitrary<Scenario> = fc.array(note, { minLength: 1, maxLength: 14 }).chain((notes) => {
  const all = notes.map((_, index) => index);
  return fc.record({
    notes: fc.constant(notes),
    deliveries: fc
      .tuple(fc.shuffledSubarray(all, { minLength: all.length }), fc.array(fc.nat(all.length - 1), { maxLength: 6 }))
      .chain(([once, again]) => fc.shuffledSubarray([...once, ...again], { minLength: once.length + again.length }))
      .chain((order) =>
        fc
          .array(fc.nat(5), { minLength: order.length, maxLength: order.length })
          .map((batches) => order.map((event, index) => ({ event, batch: batches[index] ?? 0 }))),
      ),
    workers: fc.constantFrom(1, 1, 2, 4),
  });
});

/** In milliseconds. More scenarios take longer. */
const timeout = 60_000 + numRuns * 500;

test("whatever the order, repetitions and batches of deliveries, the bookings are the fold", { timeout }, async () => {
  await fc.assert(
    fc.asyncProperty(scenario, async ({ notes, deliveries, workers }) => {
      const events = toEnvelopes(notes);
      await pool.query("truncate bookings, booking_events, booking_changes");
      await deliver(batchesOf(events, deliveries), workers);

      const expected = foldAll(events);
      expect(await readBookings(), "bookings").toEqual(describeStates(expected));
      expect(await followFeed(), "state by following the feed").toEqual(describeContents(expected));
      const log = await readLog();
      expect(
        log.map(({ id }) => id),
        "log",
      ).toEqual(events.map(({ eventId }) => eventId));
      expect(
        log.filter(({ duplicateOf }) => duplicateOf !== null).map(({ id }) => id),
        "key duplicates",
      ).toEqual(events.filter((event) => !counts(event, events)).map(({ eventId }) => eventId));
      expect(
        log.filter(({ warnings }) => warnings.includes("key-reused")).map(({ id }) => id),
        "reused keys",
      ).toEqual(events.filter((event) => reusesKey(event, events)).map(({ eventId }) => eventId));
      // An event is recorded with its outcome in the fold, or as superseded if it arrived late and does not decide the
      // booking's state.
      for (const { event, outcome, warning, after } of [...expected.values()].flat()) {
        const recorded = log.find(({ id }) => id === event.id);
        const warnings = recorded?.warnings.filter((code: string) => code === "booking-unknown" || code === "replaced");
        expect(warnings, `warnings of ${event.id}`).toEqual(warning === null ? [] : [warning]);
        const decides = [...expected.values()].some((steps) => stateAfter(steps).eventId === event.id);
        expect(decides ? [outcome] : [outcome, "superseded"], `outcome of ${event.id}`).toContain(recorded?.outcome);
        expect(recorded?.after, `state after ${event.id}`).toEqual(describeAfter(after));
      }
    }),
    { numRuns, reporter: throwReadably },
  );
});

test("after deliveries in the order of receipt, the log and the feed are the fold's, step by step", {
  timeout,
}, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(note, { minLength: 1, maxLength: 14 }),
      fc.integer({ min: 1, max: 5 }),
      async (notes, size) => {
        // An event with the sequence of the last one would count as late.
        const events = toEnvelopes(notes.map((one) => ({ ...one, isTied: false })));
        await pool.query("truncate bookings, booking_events, booking_changes");
        const batches = events.flatMap((_, index) => (index % size === 0 ? [events.slice(index, index + size)] : []));
        await deliver(batches, 1);

        const steps = [...foldAll(events).values()].flat();
        const outcomes = new Map(steps.map(({ event, outcome }) => [event.id, outcome as string]));
        expect((await readLog()).map(({ id, outcome }) => [id, outcome])).toEqual(
          events.map(({ eventId }) => [eventId, outcomes.get(eventId) ?? "duplicate"]),
        );
        const { rows } = await pool.query("select event_id, change from booking_changes order by sequence");
        expect(rows).toEqual(
          steps
            .filter(({ outcome }) => outcome !== "unchanged" && outcome !== "duplicate")
            .sort((a, b) => a.event.sequence - b.event.sequence)
            .map(({ event, outcome }) => ({ event_id: event.id, change: outcome })),
        );
      },
    ),
    { numRuns: Math.ceil(numRuns / 3) },
  );
});

test("eight workers on ten hot bookings come to the fold", { timeout }, async () => {
  await pool.query("truncate bookings, booking_events, booking_changes");
  const random = fc.sample(note, { numRuns: Math.min(40 * numRuns, 1_200), seed: 1 });
  const hot = random.map((one, index) => ({
    ...one,
    hoursLater: 0,
    booking: `T${index % 5}`,
    key: index % 3 === 0 ? `k${index % 40}` : null,
  }));
  const events = toEnvelopes(hot);
  const [shuffled = []] = fc.sample(fc.shuffledSubarray(events, { minLength: events.length }), { numRuns: 1, seed: 2 });
  const batches = shuffled.flatMap((_, index) => (index % 15 === 0 ? [shuffled.slice(index, index + 20)] : []));
  await deliver(batches, 8);
  expect(await readBookings()).toEqual(describeStates(foldAll(events)));
  expect(await followFeed()).toEqual(describeContents(foldAll(events)));
});

function toEnvelopes(notes: Note[]): EventEnvelope[] {
  let atMs = start;
  let sequence = 0;
  return notes.map(({ partner, booking, kind, content, key, hoursLater, isTied }, index) => {
    const hasPlaceOfLast = isTied && index > 0 && key === null;
    if (!hasPlaceOfLast) {
      atMs += hoursLater * 3_600_000;
      sequence = atMs * 1_000 + index;
    }
    return {
      version: 1,
      eventId: sampleEventId(index + 1),
      kind,
      partner,
      sequence,
      receivedAt: new Date(atMs).toISOString(),
      idempotencyKey: key,
      payload: { ...toReference(booking), ...(kind === "delete" ? {} : { note: content }) },
    };
  });
}

function toReference(booking: string) {
  const [kind, reference = ""] = booking.startsWith("C:") ? ["consumer", booking.slice(2)] : ["trip", booking];
  return kind === "trip"
    ? { consumerTripPartnerExternalReference: reference }
    : { consumerPartnerExternalReference: reference };
}

function batchesOf(events: EventEnvelope[], deliveries: Scenario["deliveries"]): EventEnvelope[][] {
  return [...Map.groupBy(deliveries, ({ batch }) => batch).values()].map((group) =>
    group.flatMap(({ event }) => events[event] ?? []),
  );
}

/** Each worker takes the next batch after its last one. */
async function deliver(batches: EventEnvelope[][], workers: number): Promise<void> {
  const queue = [...batches];
  await Promise.all(
    Array.from({ length: workers }, async () => {
      for (let batch = queue.shift(); batch !== undefined; batch = queue.shift()) await applyAll(batch);
    }),
  );
}

/** Events that were left out, because another worker had locked their booking, are applied alone. */
async function applyAll(batch: EventEnvelope[]): Promise<void> {
  const outcomes = await applyEvents(pool, batch, options);
  const left = batch.filter(({ eventId }) => !outcomes.has(eventId));
  for (const event of left) await applyEvents(pool, [event], { ...options, isAlone: true });
}

/** Of a booking's events with the same key, kind and content, only the one received first counts. */
function counts(event: EventEnvelope, events: EventEnvelope[]): boolean {
  return !earlierWithKey(event, events).some(
    ({ kind, payload }) => kind === event.kind && digestOf(payload) === digestOf(event.payload),
  );
}

function referenceOf({ consumerTripPartnerExternalReference, consumerPartnerExternalReference }: BookingPayload) {
  return [consumerTripPartnerExternalReference ?? null, consumerPartnerExternalReference ?? null];
}

function reusesKey(event: EventEnvelope, events: EventEnvelope[]): boolean {
  return counts(event, events) && earlierWithKey(event, events).length > 0;
}

function earlierWithKey(event: EventEnvelope, events: EventEnvelope[]): EventEnvelope[] {
  const { partner, payload, idempotencyKey, sequence } = event;
  if (idempotencyKey === null) return [];
  return events.filter(
    (other) =>
      other.partner === partner &&
      digestOf(referenceOf(other.payload)) === digestOf(referenceOf(payload)) &&
      other.idempotencyKey === idempotencyKey &&
      other.sequence < sequence,
  );
}

function foldAll(events: EventEnvelope[]): Map<string, FoldStep[]> {
  const counted = events.filter((event) => counts(event, events)).map((event) => toIncomingEvent(event, digestKey));
  const bookings = Map.groupBy(counted, nameBooking);
  return new Map(
    [...bookings].map(([name, ofBooking]) => [
      name,
      foldEvents(null, ofBooking, { earlierCreates: new Map(), ...options }),
    ]),
  );
}

function nameBooking({ partner, referenceKind, reference }: Record<"partner" | "referenceKind" | "reference", string>) {
  return `${partner} ${referenceKind} ${reference}`;
}

function describeStates(expected: Map<string, FoldStep[]>): Record<string, unknown> {
  return Object.fromEntries(
    [...expected].map(([name, steps]) => {
      const { state, eventId, sequence, content, lastSequence, createdAt, updatedAt, deletedAt } = stateAfter(steps);
      const times = { created_at: createdAt, updated_at: updatedAt, deleted_at: deletedAt };
      const digest = content?.digest ?? null;
      return [name, { state, event_id: eventId, sequence, digest, last_sequence: lastSequence, ...times }];
    }),
  );
}

async function readBookings(): Promise<Record<string, unknown>> {
  const { rows } = await pool.query(
    `select partner, reference_kind as "referenceKind", reference, payload, booking_key, state, event_id, sequence,
       encode(content_digest, 'hex') as digest, last_sequence, created_at, updated_at, deleted_at
     from bookings`,
  );
  return Object.fromEntries(
    rows.map(({ partner, referenceKind, reference, payload, booking_key, ...state }) => {
      expect(booking_key).toEqual(bookingKey(partner, referenceKind, reference));
      // The payload and the digest belong together.
      if (payload !== null) expect(digestOf(payload)).toBe(state.digest);
      else expect(state.digest).toBe(null);
      return [nameBooking({ partner, referenceKind, reference }), state];
    }),
  );
}

function describeContents(expected: Map<string, FoldStep[]>): Record<string, string> {
  return Object.fromEntries(
    [...expected].map(([name, steps]) => {
      const { state, content } = stateAfter(steps);
      return [name, state === "active" ? (content?.digest ?? "") : "deleted"];
    }),
  );
}

/** Returns what a reader of the feed knows of the bookings. */
async function followFeed(): Promise<Record<string, string>> {
  const { rows } = await pool.query(
    `select booking_changes.partner, booking_changes.reference_kind as "referenceKind", booking_changes.reference,
       change, revision, event_id as "eventId", previous_event_id as "previousEventId", event.payload,
       previous.payload as "previousPayload", previous.kind as "previousKind"
     from booking_changes
     join booking_events as event on event.id = booking_changes.event_id
     left join booking_events as previous on previous.id = booking_changes.previous_event_id
     order by booking_changes.id`,
  );
  const contents: Record<string, string> = {};
  const revisions: Record<string, number> = {};
  const eventIds: Record<string, string> = {};
  for (const {
    change,
    revision,
    eventId,
    previousEventId,
    payload,
    previousPayload,
    previousKind,
    ...booking
  } of rows) {
    const name = nameBooking(booking);
    const before = contents[name];
    expect(revision, "revision").toBe((revisions[name] ?? 0) + 1);
    revisions[name] = revision;
    expect(previousEventId, "event of the change before").toBe(eventIds[name] ?? null);
    eventIds[name] = eventId;
    const deleted = previousKind === "delete" ? "deleted" : undefined;
    const previous = previousKind === null ? undefined : (deleted ?? digestOf(previousPayload));
    expect(previous, "content before the change").toBe(before);
    const after = change === "deleted" ? "deleted" : digestOf(payload);
    // It is an update, too, if the booking began earlier.
    if (change === "recreated") expect(after, `${change} changes something`).not.toBe(before);
    const possible =
      before === undefined ? ["created", "deleted"] : before === "deleted" ? ["recreated"] : ["updated", "deleted"];
    expect(possible, `what may follow ${before}`).toContain(change);
    contents[name] = after;
  }
  const { rows: bookings } = await pool.query(
    `select partner, reference_kind as "referenceKind", reference, revision, event_id as "eventId",
       feed_event_id as "feedEventId"
     from bookings`,
  );
  const toObject = (pick: (booking: (typeof bookings)[number]) => unknown) =>
    Object.fromEntries(bookings.map((booking) => [nameBooking(booking), pick(booking)]));
  expect(
    toObject(({ revision }) => revision),
    "revisions of the bookings",
  ).toEqual(revisions);
  const known = toObject(({ eventId, feedEventId }) => feedEventId ?? eventId);
  expect(known, "events that the feed named last").toEqual(eventIds);
  expect(bookings.filter(({ eventId, feedEventId }) => eventId === feedEventId)).toEqual([]);
  return contents;
}

async function readLog() {
  const { rows } = await pool.query(
    `select id, outcome, duplicate_of as "duplicateOf", warnings, state_after as state,
       coalesce(decided_by, id) as event_id, newest_keyless_sequence as "newestKeylessSequence",
       case when content_from is not null or kind <> 'delete' then (
         select encode(content_digest, 'hex') from booking_events as source
         where source.id = coalesce(booking_events.content_from, booking_events.id)
       ) end as digest
     from booking_events order by sequence, id`,
  );
  return rows.map(({ id, outcome, duplicateOf, warnings, ...after }) => ({
    id,
    outcome,
    duplicateOf,
    warnings,
    after,
  }));
}

/** In the form of {@link readLog}. */
function describeAfter({ state, eventId, content }: FoldStep["after"]): Record<string, unknown> {
  const [digest, newestKeylessSequence] = [content?.digest ?? null, content?.newestKeylessSequence ?? null];
  return { state, event_id: eventId, newestKeylessSequence, digest };
}

function stateAfter(steps: FoldStep[]): FoldStep["after"] {
  const last = steps.at(-1);
  if (last === undefined) throw new Error("A booking has at least one event.");
  return last.after;
}

function digestOf(payload: unknown): string {
  return digestKey.digestContent(hash("sha256", toCanonicalJson(payload), "hex"));
}

/** Shows a counterexample as a history: the events in the order of receipt, and then the deliveries. */
function throwReadably(result: fc.RunDetails<[Scenario]>): void {
  if (!result.failed) return;
  const [found] = result.counterexample ?? [];
  const history = found?.notes.map(({ partner, booking, kind, content, key, hoursLater, isTied }, index) => {
    const tie = isTied && key === null ? ["tied"] : [];
    const what = [...tie, kind, ...(kind === "delete" ? [] : [content]), ...(key === null ? [] : [`key ${key}`])];
    return `  ${index + 1}. +${hoursLater} h  ${partner} ${booking}: ${what.join(" ")}`;
  });
  const batches = Map.groupBy(found?.deliveries ?? [], ({ batch }) => batch);
  const groups = [...batches.values()].map((group) => group.map(({ event }) => event + 1).join("+"));
  throw new Error(
    [
      "Not the fold of its events.",
      `Seed ${result.seed}, path ${result.counterexamplePath}, after ${result.numShrinks} shrinks.`,
      "Events in the order of receipt:",
      ...(history ?? []),
      `Delivered to ${found?.workers} worker(s), batch by batch: ${groups.join(", ")}`,
      result.errorInstance instanceof Error ? result.errorInstance.message : String(result.errorInstance),
    ].join("\n"),
  );
}
