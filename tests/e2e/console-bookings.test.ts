import { textOf } from "@booking-events/console/testing/text-of";
import { expect, test } from "vitest";
import { idOf, tripEvent, useStory } from "./console-story.ts";

const own = useStory();
const path = "/bookings/acme/TRIP-1";
const [first, second, third] = [idOf(1), idOf(2), idOf(3)];

async function insertHistory(): Promise<void> {
  await own.apply(
    tripEvent(1, { consumerGivenName: "Wren", consumerTripArrivalDate: "2027-06-14" }, { kind: "create" }),
    tripEvent(2, { consumerGivenName: "Robin", consumerTripArrivalDate: "2027-06-15" }, { secretId: "s2" }),
    tripEvent(3, { consumerGivenName: "Robin", consumerTripArrivalDate: "2027-06-16" }),
  );
}

test("a booking shows its events, why, what each changed, by which secret, and that it is right", async () => {
  await insertHistory();
  const ada = await own.desk.logIn();
  const { status, html } = await ada.get(path);
  expect(status).toBe(200);
  const text = textOf(html);
  expect(text).toContain("Recomputed from 3 events");
  expect(text).toContain("The booking had other content.");
  expect(text).toContain("There was no booking.");
  expect(text).toMatch(/Changed: consumerGivenName consumerTripArrivalDate.*by secret s2/s);
  for (const id of [first, second, third]) expect(html).toContain(`href="/events/${id}"`);
  expect(html).not.toContain("Robin");
  expect(html).not.toContain("Wren");

  await own.query("update bookings set state = 'deleted', deleted_at = now()");
  expect(textOf((await ada.get(path)).html)).toContain("What is stored is not what the events in the log come to.");
});

test("each point of its history shows the state, and what differs from before and from now", async () => {
  await insertHistory();
  const ada = await own.desk.logIn();
  const at = async (point: string) => textOf((await ada.get(`${path}?at=${point}`)).html);
  const arrivalAt = (text: string) => /Field .*?consumerTripArrivalDate (.*?) consumer/s.exec(text)?.[1];
  expect(arrivalAt(await at(second))).toBe("2027-06-15 2027-06-14 2027-06-16");
  expect(await at(second)).toContain("3 fields, 2 changed by it, 1 other than now.");
  // The time of the second event, and then one before the first.
  expect(arrivalAt(await at("2026-11-20T00:00:02.5Z"))).toBe("2027-06-15 2027-06-14 2027-06-16");
  expect(await at("2026-11-20T00:00:00Z")).toContain("The log has nothing of the booking from until then.");
  expect(arrivalAt(await at(third))).toBe("2027-06-16 2027-06-15 the same");
  expect((await ada.get(`${path}?at=soon`)).status).toBe(422);

  await own.apply(tripEvent(4, {}, { kind: "delete" }));
  const deleted = (await ada.get(path)).html;
  expect(textOf(deleted)).toContain("as it is now. Restore to before the deletion…");
  expect(deleted).toContain(`at=${encodeURIComponent("2026-11-20T00:00:03.000Z")}`);
  expect(await at(third)).toContain("its fields as they are now. Restore to this point…");
});

test("there is no way back to between two events of the same millisecond, and the page says so", async () => {
  const at = (microseconds: number) => ({ sequence: tripEvent(2, {}).sequence + microseconds });
  await own.apply(
    tripEvent(1, { note: "first" }, { kind: "create" }),
    tripEvent(2, { note: "second" }, at(1)),
    tripEvent(3, {}, { kind: "delete", ...at(2) }),
  );
  const ada = await own.desk.logIn();
  const show = async (query: string) => textOf((await ada.get(`${path}${query}`)).html);
  const why = "The next event came within the same millisecond, so there is no time between them to restore to.";
  expect(await show(`?at=${first}`)).toContain("Restore to this point…");
  for (const query of [`?at=${second}`, ""]) {
    expect(await show(query)).toContain(why);
    expect(await show(query)).not.toContain("Restore to");
  }
});

test("values are shown once, to who has the role, with a reason that is recorded without them", async () => {
  await insertHistory();
  const ada = await own.desk.logIn();
  const refused = await ada.post(path, { reason: "because" });
  expect([refused.status, refused.html.includes("Robin")]).toEqual([400, false]);
  const { status, html } = await ada.post(path, { reason: "wrong-data", ticket: "OPS-1", at: second });
  expect(status).toBe(200);
  expect(textOf(html)).toMatch(/consumerGivenName Robin Wren the same/);
  expect((await ada.get(path)).html).not.toContain("Robin");

  const { rows } = await own.query(
    `select operator, command, arguments, outcome, did, (select booking_id::text from bookings) as id
     from operator_actions`,
  );
  expect(rows).toEqual([
    {
      ...{ operator: "Ada", command: "bookings reveal", outcome: "done" },
      arguments: { partner: "acme", bookingId: rows[0].id, reason: "wrong-data", ticket: "OPS-1" },
      did: {},
      id: rows[0].id,
    },
  ]);
});

test("nothing of guests is shown or exported while it can't be recorded", async () => {
  await insertHistory();
  await own.query(
    `create function refuse() returns trigger language plpgsql
     as $$ begin raise exception 'no space' using errcode = '53100'; end $$;
     create trigger refuse before insert on operator_actions execute function refuse()`,
  );
  try {
    const ada = await own.desk.logIn();
    for (const [page, form, value] of [
      [path, { reason: "legal" }, "Robin"],
      ["/partners/acme/bookings.csv", {}, "TRIP-1,"],
    ] as const) {
      const { status, html } = await ada.post(page, { ...form });
      expect([page, status, html.includes(value)]).toEqual([page, 503, false]);
      expect(textOf(html)).toContain("Nothing was done, since it could not be recorded.");
    }
  } finally {
    await own.query("drop function refuse cascade");
  }
});

test("the record of a look at values never has the reference, though there is no such booking", async () => {
  const ada = await own.desk.logIn();
  expect((await ada.post("/bookings/acme/Robin-Wren", { reason: "legal" })).status).toBe(404);
  const { rows } = await own.query("select to_jsonb(operator_actions)::text as text from operator_actions");
  expect(JSON.stringify(rows)).not.toContain("Robin-Wren");
});

test("an event that waits, and one that is dead, are part of the story", async () => {
  await insertHistory();
  await own.insertLetter(tripEvent(4, {}));
  await own.enqueue(tripEvent(5, {}));
  const ada = await own.desk.logIn();
  const text = textOf((await ada.get(path)).html);
  expect(text).toMatch(/It waits for a worker\..*1 attempt failed, 22003: It is too large\. Replay or discard it\./s);
  expect(text).toContain("1 of this booking among 1 that wait.");
});

test("an erased booking says so, when and by whom", async () => {
  await insertHistory();
  await own.ops("guests", "erase", "--reference", "TRIP-1", "--reason", "asked", "--by", "Grace", "--yes");
  const ada = await own.desk.logIn();
  const { status, html } = await ada.get(path);
  expect(status).toBe(200);
  expect(textOf(html)).toMatch(/State erased Erased .* by Grace/);
  expect(html).not.toContain("2027-06-1");
});

test("readers of the feed are told about, with what has failed", async () => {
  await insertHistory();
  await own.query(
    `insert into feed_readers (name, last_id) select name, last_id + shift from feed_position,
       (values ('ahead', 0), ('behind', -1), ('failing', 0), ('gone', 0)) as reader (name, shift)`,
  );
  await own.query(
    `insert into feed_deliveries (reader, booking_id, change_id, attempts, retry_at, died_at, failure)
     select reader, booking_id, last_id, 3, retry_at, died_at, failure from bookings, feed_position,
       (values ('failing', now(), null, 'http-500'), ('gone', null, now(), 'timeout'))
         as delivery (reader, retry_at, died_at, failure)`,
  );
  const ada = await own.desk.logIn();
  const text = textOf((await ada.get(path)).html);
  expect(text).toMatch(/ahead dealt with 3 of 3/);
  expect(text).toMatch(/behind waiting 2 of 3/);
  expect(text).toMatch(/failing failing 2 of 3 3 attempts: http-500/);
  expect(text).toMatch(/gone dead 2 of 3 3 attempts: timeout/);
});

test("a trip and a consumer with the same reference are told apart", async () => {
  await own.apply(
    tripEvent(1, {}, { kind: "create" }),
    tripEvent(2, {}, { payload: { consumerPartnerExternalReference: "TRIP-1" } }),
  );
  const ada = await own.desk.logIn();
  expect(textOf((await ada.get(path)).html)).toContain("Which booking do you mean?");
  expect(textOf((await ada.get(`${path}?kind=consumer`)).html)).toContain("Of the consumer TRIP-1");
  expect((await ada.get("/bookings/acme/TRIP-2")).status).toBe(404);
});

const hostile = '<img src=x onerror="alert(1)">\u202e"\'&\u0007';

test.each([
  ["markup, quotes, control characters and a turned direction", hostile],
  ["8,192 characters", "\u{1f4a5}".repeat(4_096)],
  ["two full stops", ".."],
  ["slashes and per cents", "a/../%2F?#%"],
  ["line breaks", "a\r\nb\nc"],
])("hostile values stay text: %s", async (_what, value) => {
  const { length } = JSON.stringify(value);
  const payload = { [value.slice(0, 4_000)]: value, consumerGivenName: value, consumerTripDestinationName: value };
  await own.apply(
    tripEvent(1, payload, { kind: "create", reference: value, idempotencyKey: "key-1" }),
    tripEvent(2, { ...payload, note: length }, { reference: value }),
  );
  await own.insertLetter(tripEvent(3, {}, { reference: value }));
  const ada = await own.desk.logIn();
  const pages = ["/events", `/events/${first}`, `/events/${idOf(3)}`, "/stuck"];
  const listed = await ada.get("/events");
  const link = /href="(\/bookings\/[^"]*)"/.exec(listed.html)?.[1]?.replaceAll("&amp;", "&") ?? "";
  for (const page of [...pages, link, `/restore?reference=${encodeURIComponent(value)}`]) {
    const { status, html } = await ada.get(page);
    expect([page.slice(0, 60), status]).toEqual([page.slice(0, 60), 200]);
    expect(html).not.toContain("<img src=x");
    expect(html).not.toContain("\u202e");
    expect(html).not.toContain("\u0007");
  }
  expect(textOf((await ada.get(link)).html)).toContain("Recomputed from 2 events");
  const { html } = await ada.post(link, { reason: "legal" });
  expect(html).not.toContain("<img src=x");
  expect(html).toContain("consumerGivenName");
});
