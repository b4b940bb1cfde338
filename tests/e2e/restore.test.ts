import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { runOps, startOps } from "@booking-events/ops/testing/run-ops";
import { createProducer, createShardedProducer, digestSubject, openRecords } from "@booking-events/queue";
import { type EventEnvelope, parseJson } from "@booking-events/schema";
import { applyEvents } from "@booking-events/worker/apply/apply-events";
import { expect, test } from "vitest";
import { shareSurroundings } from "./surroundings.ts";

const own = shareSurroundings("a-secret-of-the-restore-tests-0123456789");
const startMs = Date.now() - 3_600_000;
const options = { duplicateWindowMs: 72 * 3_600_000 };

/** Events are numbered in the order of receipt, in milliseconds. */
function event(number: number, reference: string, note: string, more: Partial<EventEnvelope> = {}): EventEnvelope {
  const time = (startMs + number).toString(16).padStart(12, "0");
  return {
    version: 1,
    eventId: `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${String(number).padStart(12, "0")}`,
    kind: "update",
    partner: "acme",
    sequence: (startMs + number) * 1_000,
    receivedAt: new Date(startMs + number).toISOString(),
    idempotencyKey: null,
    secretId: "s1",
    payload: { consumerTripPartnerExternalReference: reference, note },
    ...more,
  };
}

function deletion(number: number, reference: string): EventEnvelope {
  const payload = { consumerTripPartnerExternalReference: reference };
  return event(number, reference, "", { kind: "delete", payload });
}

async function apply(...events: EventEnvelope[]): Promise<void> {
  for (let from = 0; from < events.length; from += 500)
    await applyEvents(own.pool, events.slice(from, from + 500), options);
}

const timeOf = (number: number) => new Date(startMs + number).toISOString();

async function restore(...args: string[]) {
  const ran = await runOps(["bookings", "restore", "acme", "--json", ...args], { environment: own.environment });
  expect({ exitCode: ran.exitCode, stderr: ran.stderr }).toEqual({ exitCode: 0, stderr: "" });
  return JSON.parse(ran.stdout);
}

/** All that follows from the content: everything but the events, times and counts of changes. */
async function readRows(): Promise<unknown[]> {
  const { rows } = await own.pool.query(
    `select to_jsonb(bookings) - '{event_id,sequence,last_sequence,revision,feed_event_id,content_event_id,updated_at,
       newest_keyless_sequence,guest_hashes,payload}'::text[] as row, payload::text
     from bookings order by reference`,
  );
  return rows;
}

async function readNotes(): Promise<Record<string, string>> {
  const { rows } = await own.pool.query("select reference, state, payload ->> 'note' as note from bookings");
  return Object.fromEntries(
    rows.map(({ reference, state, note }) => [reference, state === "active" ? note : `${state} ${note}`]),
  );
}

const reasonsOf = ({ bookings }: { bookings: { reference: string; action: string | null; reason: string | null }[] }) =>
  Object.fromEntries(bookings.map(({ reference, action, reason }) => [reference, action ?? reason]));

/** `npm run test:nightly` has more. */
const manyBookings = Number(process.env["RESTORED_BOOKINGS"] ?? 1_000);

test("thousands of wrong updates are put back, digit by digit, and that can be undone", async () => {
  const count = manyBookings;
  const references = Array.from({ length: count }, (_, index) => `T-${String(index).padStart(4, "0")}`);
  const right = references.map((reference, index) =>
    event(index, reference, "right", {
      kind: "create",
      defaultCountry: "FR",
      payload: parseJson(
        `{"consumerTripPartnerExternalReference": "${reference}", "consumerPhone": "06 12 34 56 78",
          "consumerTripArrivalDate": "2027-01-02", "note": "right", "price": 1${index}234567890123456789.10}`,
      ) as EventEnvelope["payload"],
    }),
  );
  await apply(...right, event(count, "OTHER", "by s1"));
  const before = await readRows();
  const wrong = references.map((reference, index) =>
    event(2 * count + index, reference, "wrong", { secretId: "s2", defaultCountry: "GB" }),
  );
  await apply(...wrong, event(3 * count, "OTHER", "by s1 again"));
  const during = await readRows();
  expect(during).not.toEqual(before);

  const wanted = ["--secret", "s2", "--at", timeOf(count + 1)];
  const preview = await restore(...wanted, "--dry-run");
  expect(preview).toMatchObject({ isDryRun: true, counts: { update: count, delete: 0 }, results: null, omitted: 0 });
  expect(preview.fields).toEqual({
    ...{ consumerPhone: count, consumerTripArrivalDate: count, note: count, price: count },
  });
  expect(JSON.stringify(preview)).not.toContain("2027-01-02");
  expect(await readRows()).toEqual(during);

  await own.start("worker");
  const restored = await restore(...wanted, "--yes", "--unless-changed-since", preview.readAt);
  expect(restored.results).toMatchObject({ queued: count, applied: count, superseded: 0, waiting: 0 });
  const after = await readRows();
  const isOther = (row: unknown) => JSON.stringify(row).includes("OTHER");
  expect(after.filter((row) => !isOther(row))).toEqual(before.filter((row) => !isOther(row)));
  expect((await readNotes())["OTHER"]).toBe("by s1 again");
  const { rows } = await own.pool.query(
    `select count(*)::int, count(secret_id)::int as with_secret, min(warnings::text) as warnings from booking_events
     where idempotency_key like 'restore-%'`,
  );
  expect(rows).toEqual([{ count, with_secret: 0, warnings: "{}" }]);
  expect((await restore(...wanted, "--yes")).counts).toMatchObject({ update: 0, same: count });

  const undone = await restore("--at", timeOf(3 * count + 1), "--yes");
  expect(undone.counts).toMatchObject({ update: count });
  expect(await readRows()).toEqual(during);
}, 120_000);

test("deleted bookings come back, and new ones go only if that is wanted", async () => {
  await apply(event(1, "A", "one"), event(2, "B", "two"), deletion(3, "GONE"));
  await apply(deletion(11, "A"), event(12, "B", "three"), event(13, "NEW", "four"), event(14, "GONE", "five"));
  await own.start("worker");
  expect(reasonsOf(await restore("--at", timeOf(10), "--yes"))).toEqual({
    ...{ A: "update", B: "update", GONE: "delete", NEW: "new" },
  });
  expect(await readNotes()).toEqual({ A: "one", B: "two", GONE: "deleted five", NEW: "four" });
  expect(reasonsOf(await restore("--at", timeOf(10), "--yes", "--delete-new"))).toEqual({ NEW: "delete" });
  expect((await readNotes())["NEW"]).toBe("deleted four");
  const { rows } = await own.pool.query("select state_after from booking_at($1) where reference = 'A'", [timeOf(12)]);
  expect(rows).toEqual([{ state_after: "deleted" }]);
  const changes = await own.pool.query("select change from booking_changes where reference = 'A' order by id");
  expect(changes.rows.map(({ change }) => change)).toEqual(["created", "deleted", "recreated"]);
}, 60_000);

test("what the partner sent meanwhile wins, and what waits in the queue is left alone", async () => {
  await apply(event(1, "A", "right"), event(2, "B", "right"), event(3, "C", "right"), event(4, "D", "right"));
  await apply(event(11, "A", "wrong"), event(12, "B", "wrong"), event(13, "C", "wrong"));
  const preview = await restore("--at", timeOf(10), "--dry-run");
  expect(reasonsOf(preview)).toEqual({ A: "update", B: "update", C: "update" });

  const { REDIS_URL: redisServers = "", QUEUE_PREFIX: prefix = "" } = own.environment;
  const producer = createProducer({ redisServers, prefix, onError: () => {} });
  await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
  await producer.enqueueNumbered([event(20, "B", "waits")]);
  await apply(event(Date.now() - startMs, "C", "after the preview"));
  const restoring = restore("--at", timeOf(10), "--yes", "--unless-changed-since", preview.readAt);
  await waitFor(async () => expect((await producer.measureLoad()).backlog).toBe(2));
  // Received after the restore, and applied before it.
  await apply(event(Date.now() - startMs + 5, "A", "newer"));
  await producer.close();
  await own.start("worker");
  const restored = await restoring;
  expect(reasonsOf(restored)).toEqual({ A: "update", B: "in-queue", C: "changed-meanwhile" });
  expect(restored.results).toEqual({ ...{ queued: 1, applied: 0, superseded: 1, erased: 0, dead: 0, waiting: 0 } });
  await waitFor(async () =>
    expect(await readNotes()).toEqual({ A: "newer", B: "waits", C: "after the preview", D: "right" }),
  );
}, 60_000);

test("a booking whose first event waits is not unknown, also if a trip has the same reference", async () => {
  await apply(event(1, "SAME", "one"));
  const { REDIS_URL: redisServers = "", QUEUE_PREFIX: prefix = "" } = own.environment;
  const producer = createProducer({ redisServers, prefix, onError: () => {} });
  await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
  await producer.enqueueNumbered([
    event(11, "SAME", "", { payload: { consumerPartnerExternalReference: "SAME" } }),
    event(12, "NEW", "waits"),
  ]);
  await producer.close();
  const { bookings } = await restore("SAME", "NEW", "NEVER", "--at", timeOf(5), "--dry-run");
  expect(
    bookings.map(({ reference, referenceKind, reason }: Record<string, unknown>) => [reference, referenceKind, reason]),
  ).toEqual([
    ["SAME", "trip", "in-queue"],
    ["NEW", null, "in-queue"],
    ["NEVER", null, "unknown"],
  ]);
});

test("what the log has lost is not restorable, and what was erased never comes back", async () => {
  await apply(...["KEPT", "LOST", "ERASED"].map((reference, index) => event(index + 1, reference, "right")));
  await apply(...["KEPT", "LOST", "ERASED"].map((reference, index) => event(index + 11, reference, "wrong")));
  await own.pool.query("delete from booking_events where id = $1", [event(2, "", "").eventId]);
  const erasing = ["guests", "erase", "--reference", "ERASED", "--partner", "acme", "--reason", "r", "--yes"];
  expect((await runOps(erasing, { environment: own.environment })).exitCode).toBe(0);
  await own.start("worker");
  const all = await restore("--at", timeOf(10), "--yes");
  expect(Object.values(reasonsOf(all)).sort()).toEqual(["erased", "not-in-log", "update"]);
  const named = await restore("KEPT", "LOST", "ERASED", "NEVER", "--at", timeOf(10), "--yes");
  expect(named.counts).toMatchObject({ same: 1 });
  expect(reasonsOf(named)).toEqual({ LOST: "not-in-log", ERASED: "erased", NEVER: "unknown" });
  expect(await readNotes()).toMatchObject({ KEPT: "right", LOST: "wrong" });
}, 60_000);

test("a booking's story says what each event changed, what it was at a time, and who erased it", async () => {
  const showBooking = async (...args: string[]) => {
    const ran = await runOps(["bookings", "show", "acme", ...args], { environment: own.environment });
    expect(ran).toMatchObject({ exitCode: 0, stderr: "" });
    return ran.stdout;
  };
  const show = (...args: string[]) => showBooking("A", ...args);
  const priced = { consumerTripPartnerExternalReference: "A", note: "one", price: 1 };
  await apply(event(1, "A", "one"), event(2, "A", "", { payload: priced }), event(3, "A", "two", { secretId: "s2" }));
  await apply(deletion(4, "A"));
  const story = JSON.parse(await show("--json"));
  const told = story.events.map(({ changedFields, secretId }: Record<string, unknown>) => [secretId, changedFields]);
  expect(told).toEqual([
    ["s1", ["consumerTripPartnerExternalReference", "note"]],
    ["s1", ["price"]],
    ["s2", ["note", "price"]],
    ["s1", []],
  ]);
  expect(JSON.stringify(story)).not.toContain("two");
  expect(JSON.parse(await show("--json", "--diff", "--payload")).events[2].diff).toEqual({
    note: { before: "one", after: "two" },
    price: { before: 1, after: null },
  });
  expect(await show("--diff")).toMatch(/Changed by \S+\n {2}note, price\n/);
  expect(await show("--diff", "--payload")).toMatch(/^ {2}note +"one" → "two"\n {2}price +1 → null$/m);

  const { rows: looks } = await own.pool.query(
    "select command, operator, outcome, arguments from operator_actions where command like 'bookings show%'",
  );
  const { rows: stored } = await own.pool.query("select booking_id from bookings where reference = 'A'");
  const look = { command: "bookings show --payload", operator: "tester", outcome: "done" };
  const ofWhat = { arguments: { partner: "acme", bookingId: stored[0].booking_id } };
  expect(looks).toEqual([
    { ...look, ...ofWhat },
    { ...look, ...ofWhat },
  ]);
  const earlier = JSON.parse(await show("--json", "--payload", "--at", timeOf(2)));
  expect(earlier).toMatchObject({ state: "active", payload: priced, deletedAt: null });
  expect(earlier.events).toHaveLength(2);
  expect(JSON.parse(await show("--json", "--at", timeOf(0)))).toMatchObject({ state: null, events: [] });
  expect(await show("--at", timeOf(0))).toMatch(/: nothing had been received that the log still has\n+$/);
  expect(await show("--at", timeOf(3))).toContain(`Booking A of acme at ${timeOf(3)}: active`);

  const erasing = ["guests", "erase", "--reference", "A", "--partner", "acme", "--reason", "r", "--by", "ada", "--yes"];
  expect((await runOps(erasing, { environment: own.environment })).exitCode).toBe(0);
  expect(await show()).toMatch(/^Booking A of acme: erased\n/);
  expect(await show()).toMatch(/^ +Erased +\S+Z by ada$/m);
  expect(await show()).not.toContain("no create or update");
  expect(JSON.parse(await show("--json"))).toMatchObject({ reference: "A", erased: { by: "ada" } });
  // As the log names it now.
  const { rows } = await own.pool.query("select distinct reference from booking_events");
  expect(rows).toEqual([{ reference: expect.stringMatching(/^erased-/) }]);
  expect(await showBooking(rows[0].reference)).toMatch(/^ +Erased +\S+Z by ada$/m);
});

test("one search finds bookings, events in the queue and refused requests, of all partners", async () => {
  const find = async (text: string) => {
    const ran = await runOps(["find", text, "--json"], { environment: own.environment });
    expect(ran).toMatchObject({ exitCode: 0, stderr: "" });
    const { found, unseen } = JSON.parse(ran.stdout);
    expect(unseen).toEqual([]);
    return found.map(({ what, by, partner, state }: Record<string, string>) => [what, by, partner, state].join(", "));
  };
  const payload = { consumerTripPartnerExternalReference: "A 1", consumerEmail: "Jo@Example.com" };
  await apply(event(1, "A 1", "", { payload }), event(2, "A 1", "x", { partner: "globe" }));
  expect((await find("\u200b A\u00a01 ")).sort()).toEqual([
    "booking, reference, acme, active",
    "booking, reference, globe, active",
  ]);
  expect(await find("jo@example.com")).toEqual(["booking, email, acme, active"]);
  expect(await find(event(2, "", "").eventId.toUpperCase())).toEqual(["event, event id, globe, created"]);
  expect(await find("nothing")).toEqual([]);
  await writeRefusal({ partner: "acme", payload: { consumerTripPartnerExternalReference: "B 1" } });
  expect(await find("B\u00a01")).toEqual(["refused request, reference, acme, invalid-data"]);
  const refused = await runOps(["find", "B 1", "--json"], { environment: own.environment });
  // It became no event.
  expect(JSON.parse(refused.stdout).found).toMatchObject([
    { eventId: null, requestId: expect.any(String), isTest: false },
  ]);
  await runOps(["partners", "add", "trial", "--test"], { environment: own.environment });
  await writeRefusal({ partner: "trial", payload: { consumerTripPartnerExternalReference: "B 2" } });
  const tried = await runOps(["find", "B 2", "--json"], { environment: own.environment });
  expect(JSON.parse(tried.stdout).found).toMatchObject([{ partner: "trial", isTest: true }]);

  const { REDIS_URL: redisServers = "", QUEUE_PREFIX: prefix = "" } = own.environment;
  const waiting = event(3, "A 2", "");
  const producer = createProducer({ redisServers, prefix, onError: () => {} });
  await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
  await producer.enqueueNumbered([waiting]);
  await producer.close();
  expect(await find(waiting.eventId)).toEqual(["event in the queue, event id, acme, waiting"]);
});

async function writeRefusal(subject: Parameters<typeof digestSubject>[0]): Promise<void> {
  const { REDIS_URL: redisServers = "", QUEUE_PREFIX: prefix = "" } = own.environment;
  const records = openRecords({ redisServers, prefix, connectionName: "test", onError: () => {} });
  const what = { secretId: "s1", kind: "create", status: 422, code: "invalid-data", violations: [], ip: null };
  const refusal = { ...what, requestId: event(9, "", "").eventId, at: new Date(), partner: subject.partner };
  // The writer does not wait for a connection that is still being opened.
  await waitFor(() => records.writeRefusals([{ ...refusal, subject: digestSubject(subject) }]).then(() => true));
  records.close();
}

async function readActions() {
  const { rows } = await own.pool.query(
    "select arguments, outcome, did from operator_actions where command = 'bookings restore' order by began_at",
  );
  return rows;
}

test("a restore that is killed in the middle and run again ends right, and does nothing twice", async () => {
  await own.pool.query("truncate operator_actions");
  const count = 600;
  const references = Array.from({ length: count }, (_, index) => `T-${index}`);
  await apply(...references.map((reference, index) => event(index, reference, "right")));
  await apply(...references.map((reference, index) => event(count + index, reference, "wrong")));
  const args = ["bookings", "restore", "acme", "--at", timeOf(count - 1), "--yes"];
  const { REDIS_URL: redisServers = "", QUEUE_PREFIX: prefix = "" } = own.environment;
  const producer = createProducer({ redisServers, prefix, onError: () => {} });
  await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
  const readBacklog = async () => (await producer.measureLoad()).backlog;
  // Of other tests.
  const backlogBefore = await readBacklog();
  // Without a worker, there is room for a part.
  const killed = await startOps(args, { ...own.environment, MAX_BACKLOG: "2500" });
  await waitFor(async () => expect(await readBacklog()).toBeGreaterThan(backlogBefore), { timeoutMs: 30_000 });
  killed.kill("SIGKILL");
  expect((await killed.ran()).exitCode).toBeNull();
  const queued = (await readBacklog()) - backlogBefore;
  expect(queued).toBeLessThan(count);

  const again = restore("--at", timeOf(count - 1), "--yes");
  await waitFor(async () => expect(await readBacklog()).toBe(backlogBefore + count));
  await own.start("worker");
  expect(await again).toMatchObject({ counts: { update: count - queued, "in-queue": queued } });
  await waitFor(async () => expect(await readBacklog()).toBe(0));
  await producer.close();
  expect((await restore("--at", timeOf(count - 1), "--yes")).counts).toMatchObject({ update: 0, same: count });
  expect(new Set(Object.values(await readNotes()))).toEqual(new Set(["right"]));
  const { rows } = await own.pool.query(
    `select count(*)::int, count(distinct reference)::int as bookings, min(outcome) as outcome, max(outcome) as other
     from booking_events where secret_id is null`,
  );
  expect(rows).toEqual([{ count, bookings: count, outcome: "updated", other: "updated" }]);
  const changes = await own.pool.query("select revision, count(*)::int from booking_changes group by 1 order by 1");
  expect(changes.rows).toEqual([1, 2, 3].map((revision) => ({ revision, count })));
  const actions = await readActions();
  const given = { partner: "acme", bookings: "all", at: timeOf(count - 1), deleteNew: false };
  expect(actions).toMatchObject([
    // It was killed before it could record its end.
    { arguments: given, outcome: null, did: {} },
    { arguments: given, outcome: "done", did: { queued: count - queued, applied: count - queued, waiting: 0 } },
    { arguments: given, outcome: "done", did: { queued: 0, applied: 0 } },
  ]);
}, 120_000);

test("on several shards, each booking comes back, and what is received later wins", async () => {
  await own.pool.query("truncate operator_actions");
  const sharded = { ...own.environment, QUEUE_SHARDS: "4", QUEUE_PREFIX: uniquePrefix() };
  const references = Array.from({ length: 60 }, (_, index) => `T-${index}`);
  await apply(...references.map((reference, index) => event(index, reference, "right")));
  await apply(...references.map((reference, index) => event(100 + index, reference, "wrong")));
  const producer = createShardedProducer({
    ...{ redisServers: redisUrl(), prefix: sharded.QUEUE_PREFIX, shardCount: 4, onError: () => {} },
  });
  await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
  const [waiting = "", newer = ""] = references;
  await producer.enqueueNumbered([event(200, waiting, "waits")]);
  const args = ["bookings", "restore", "acme", ...references, "--at", timeOf(99), "--yes", "--json"];
  const restoring = runOps(args, { environment: sharded });
  await waitFor(async () => expect((await producer.measureLoad()).backlog).toBe(references.length));
  // Whatever shard it comes by.
  for (const [index, shard] of producer.shards.entries()) {
    const { sequence: _given, ...accepted } = event(300 + index, newer, "newer");
    await shard.enqueue(accepted);
  }
  await own.start("worker", { environment: sharded });
  const { counts, results } = JSON.parse((await restoring).stdout);
  await producer.close();
  expect(counts).toMatchObject({ update: references.length - 1, "in-queue": 1 });
  expect(results).toMatchObject({ queued: references.length - 1, dead: 0, waiting: 0 });
  const right = Object.fromEntries(references.map((reference) => [reference, "right"]));
  await waitFor(async () => expect(await readNotes()).toEqual({ ...right, [waiting]: "waits", [newer]: "newer" }));
  // References may name guests.
  const [action] = await readActions();
  expect(action).toMatchObject({ arguments: { bookings: references.length }, outcome: "done" });
  expect(JSON.stringify(action)).not.toContain("T-");
}, 60_000);

test("two restores at once count once", async () => {
  await apply(event(1, "A", "right"), event(11, "A", "wrong"));
  const restoring = [1, 2].map(() => restore("A", "--at", timeOf(10), "--yes"));
  await own.start("worker");
  await Promise.all(restoring);
  const events = await own.pool.query("select outcome from booking_events where secret_id is null order by outcome");
  expect(["updated", "duplicate,updated", "unchanged,updated"]).toContain(
    events.rows.map(({ outcome }) => outcome).join(),
  );
  expect(await readNotes()).toEqual({ A: "right" });
}, 60_000);

test.each<[string[], RegExp]>([
  [[], /Give --dry-run .*, or --yes/],
  [["--yes", "--dry-run"], /Give --dry-run .*, or --yes/],
])("it is said what to do: %j", async (args, message) => {
  const ran = await runOps(["bookings", "restore", "acme", "--at", timeOf(1), ...args], {
    environment: own.environment,
  });
  expect(ran).toMatchObject({ exitCode: 2, stderr: expect.stringMatching(message) });
});

test("a mistyped partner is an error", async () => {
  const ran = await runOps(["bookings", "restore", "acne", "--at", timeOf(1), "--dry-run"], {
    environment: own.environment,
  });
  expect(ran).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("Partner acne has no bookings") });
});
