import { textOf } from "@booking-events/console/testing/text-of";
import { waitFor } from "@booking-events/harness";
import { expect, test } from "vitest";
import { secondsSinceStart, tripEvent, useStory } from "./console-story.ts";

const own = useStory();
/** Between the first and the second event of each booking. */
const at = "2026-11-20T00:00:50Z";

async function insertBookings(count: number): Promise<void> {
  const references = Array.from({ length: count }, (_, index) => `T-${index}`);
  const events = (note: string, from: number, more: object) =>
    references.map((reference, index) => tripEvent(from + index, { note }, { reference, ...more }));
  await own.apply(...events("right", 1, { kind: "create" }), ...events("wrong", 100, { secretId: "s2" }));
}

async function readNotes(): Promise<Record<string, string>> {
  const { rows } = await own.query("select reference, state, payload ->> 'note' as note from bookings");
  return Object.fromEntries(rows.map(({ reference, state, note }) => [reference, `${state} ${note}`]));
}

test("a preview changes nothing, and says what would change", async () => {
  await insertBookings(3);
  await own.apply(tripEvent(200, { note: "new" }, { kind: "create", reference: "NEW" }));
  const ada = await own.desk.logIn();
  const before = await readNotes();
  const { html } = await ada.submit("/restore/preview", { partner: "acme", at });
  const text = textOf(html);
  expect(text).toContain("Nothing has been changed yet.");
  expect(text).toMatch(
    /Put back 3 bookings Deleted 0 bookings Left as they are 1: it has come since Fields note \(3\)/,
  );
  expect(text).toMatch(/T-0 put back note/);
  expect(text).toContain("Restore 3 bookings");
  expect(await readNotes()).toEqual(before);

  const deleting = textOf((await ada.submit("/restore/preview", { partner: "acme", at, "delete-new": "yes" })).html);
  expect(deleting).toMatch(/Put back 3 bookings Deleted 1 booking /);
  const bySecret = textOf((await ada.submit("/restore/preview", { partner: "acme", at, secret: "s9" })).html);
  expect(bySecret).toContain("No event by this secret of acme has changed a booking since");
  const named = textOf(
    (await ada.submit("/restore/preview", { partner: "acme", at, references: "T-1\r\nT-9\r\n" })).html,
  );
  expect(named).toMatch(/Put back 1 booking .*1: the partner has no such booking/);
});

test("what is no time, no partner or no preview is refused", async () => {
  const ada = await own.desk.logIn();
  expect((await ada.post("/restore/preview", { partner: "acme", at: "soon" })).status).toBe(422);
  expect((await ada.post("/restore/preview", { partner: "acme", at: "2999-01-01" })).status).toBe(400);
  expect((await ada.post("/restore/preview", { at })).status).toBe(400);
  const unknown = textOf((await ada.submit("/restore/preview", { partner: "nobody", at })).html);
  expect(unknown).toContain("Partner nobody has no bookings.");
  const { html } = await ada.submit("/restore", { preview: "made-up" });
  expect(textOf(html)).toContain("The preview is not known any more.");
});

test("a restore that finds no room can be cancelled, and nothing is lost", async () => {
  await insertBookings(3);
  // More than an operator's events wait behind.
  await own.enqueue(
    ...Array.from({ length: 120 }, (_, index) => tripEvent(300 + index, {}, { reference: `Q-${index}` })),
  );
  const ada = await own.desk.logIn();
  const preview = await ada.post("/restore/preview", { partner: "acme", at });
  const id = preview.location?.split("/").at(-1) ?? "";
  const { location } = await ada.post("/restore", { preview: id });
  await waitFor(async () => expect(textOf((await ada.get(location ?? "")).html)).toContain("Waits for room"));
  expect((await ada.get("/tasks")).html).toContain(location ?? "nothing");
  await ada.post(`${location}/cancel`);
  await waitFor(async () => expect(textOf((await ada.get(location ?? "")).html)).toContain("It was cancelled."));
  const { rows } = await own.query("select outcome, problem, did from operator_actions");
  expect(rows).toEqual([
    { outcome: "cancelled", problem: expect.stringContaining("It was cancelled."), did: { queued: 0 } },
  ]);
  expect(Object.values(await readNotes())).toEqual(Array(3).fill("active wrong"));
});

/** The last two tests of the file: from here on, a worker runs. */
test("a restore does what its preview has shown, except where a booking has changed since", async () => {
  await insertBookings(3);
  const ada = await own.desk.logIn();
  const preview = await ada.post("/restore/preview", { partner: "acme", at, secret: "s2" });
  const now = Date.now();
  await own.apply(
    tripEvent(0, { note: "newest" }, { reference: "T-2", sequence: (now + 50) * 1_000, eventId: idAt(now) }),
  );
  await own.startWorker();
  await own.untilApplied();
  const { location } = await ada.post("/restore", { preview: preview.location?.split("/").at(-1) ?? "" });
  await waitFor(async () => {
    const text = textOf((await ada.get(location ?? "")).html);
    expect(text).toMatch(/done begun/);
    expect(text).toMatch(/2 applied/);
    expect(text).toMatch(/it was changed after the preview, or while this ran; the newer event wins/);
  });
  expect(await readNotes()).toMatchObject({ "T-0": "active right", "T-1": "active right", "T-2": "active newest" });
  const booking = textOf((await ada.get("/bookings/acme/T-0")).html);
  expect(booking).toContain("An operator restored the booking.");
  expect(booking).toContain("Recomputed from 3 events");
});

test("a test partner's bookings are restored like any other's, and nobody else's", async () => {
  const ofTest = { partner: "acme-test", test: true as const };
  // Their log is kept for a week only.
  const now = secondsSinceStart();
  await own.apply(tripEvent(now - 90, { note: "right" }, { kind: "create" }), tripEvent(now - 30, { note: "wrong" }));
  await own.applyTest(
    tripEvent(now - 90, { note: "right" }, { ...ofTest, kind: "create" }),
    tripEvent(now - 30, { note: "wrong" }, ofTest),
  );
  await own.startWorker();
  const ada = await own.desk.logIn();
  const between = tripEvent(now - 60, {}).receivedAt;
  const preview = await ada.post("/restore/preview", { partner: " acme-test ", at: between });
  const show = async ({ location }: { location: string | null }) => textOf((await ada.get(location ?? "")).html);
  await waitFor(async () => expect(await show(preview)).toContain("Restore 1 booking"));
  const restore = await ada.post("/restore", { preview: preview.location?.split("/").at(-1) ?? "" });
  await waitFor(async () => expect(await show(restore)).toMatch(/done begun.*1 applied/));
  const { rows } = await own.queryTest("select payload ->> 'note' as note from bookings");
  expect(rows).toEqual([{ note: "right" }]);
  expect(await readNotes()).toEqual({ "TRIP-1": "active wrong" });
});

function idAt(ms: number): string {
  const time = ms.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`;
}
