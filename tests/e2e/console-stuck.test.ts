import { textOf } from "@booking-events/console/testing/text-of";
import { waitFor } from "@booking-events/harness";
import { expect, test } from "vitest";
import { idOf, tripEvent, useStory } from "./console-story.ts";

const own = useStory();

/** The ids of their events begin at a thousand for each character of the code. */
async function insertLetters(count: number, errorCode: string, partner = "acme"): Promise<void> {
  for (let number = 1; number <= count; number += 1) {
    const event = tripEvent(number + 1_000 * errorCode.length, {}, { reference: `T-${number}`, partner });
    await own.insertLetter(event, { errorCode });
  }
}

const countOpen = async () => {
  const { rows } = await own.query("select count(*)::int from dead_letters where resolved_at is null");
  return rows[0].count;
};

test("what is stuck is grouped by its cause, and filtered by the URL", async () => {
  await insertLetters(3, "22003");
  await insertLetters(2, "STALLED", "globex");
  const ada = await own.desk.logIn();
  const text = textOf((await ada.get("/stuck")).html);
  expect(text).toMatch(/dead 22003 could not be applied, and are not tried again 3 .*when replayed/);
  expect(text).toMatch(/dead STALLED could not be applied, and are not tried again 2 /);
  const one = (await ada.get("/stuck?partner=globex&status=dead&code=STALLED")).html;
  expect(one).toContain(idOf(7_001));
  expect(one).not.toContain(idOf(5_001));
  expect(textOf(one)).not.toContain("22003: It");
  // It would list what has other codes, too.
  const { status, html } = await ada.get("/stuck?code=STALLED");
  expect([status, textOf(html)]).toEqual([422, expect.stringContaining("Choose a status, too.")]);
});

test("dead letters come in pages, and none is left out", async () => {
  await insertLetters(60, "22003");
  const ada = await own.desk.logIn();
  const found: string[] = [];
  let page = "/stuck?status=dead";
  while (page !== "") {
    const { html } = await ada.get(page);
    found.push(...Array.from(html.matchAll(/<th[^>]*><a [^>]*href="\/events\/([^"]+)"/g), ([, id]) => id ?? ""));
    page = /rel="next" href="([^"]+)"/.exec(html)?.[1]?.replaceAll("&amp;", "&") ?? "";
  }
  expect(found.sort()).toEqual(Array.from({ length: 60 }, (_, index) => idOf(index + 5_001)));
});

test("the discard of all that match has a preview and a reason, and leaves the others", async () => {
  await insertLetters(3, "22003");
  await insertLetters(2, "STALLED");
  const ada = await own.desk.logIn();
  const preview = await ada.get("/stuck/discard?code=22003");
  expect(textOf(preview.html)).toContain("Discard 3");
  expect(await countOpen()).toBe(5);
  const until = /name="until" value="([^"]+)"/.exec(preview.html)?.[1] ?? "";
  const form = { code: "22003", until };
  expect((await ada.post("/stuck/discard", form)).status).toBe(400);
  expect((await ada.post("/stuck/discard", { code: "22003", reason: "sent again" })).status).toBe(400);
  expect(await countOpen()).toBe(5);

  const { html } = await ada.submit("/stuck/discard", { ...form, reason: "sent again" });
  expect(textOf(html)).toMatch(/done begun .* by Ada.*Closed 3 Results 3 discarded/);
  const { rows } = await own.query(
    "select error_code, resolved_by, resolution from dead_letters where resolved_at is not null",
  );
  expect(rows).toEqual(Array(3).fill({ error_code: "22003", resolved_by: "Ada", resolution: "discarded: sent again" }));
});

test("who only looks cannot act, and sees no button", async () => {
  await insertLetters(1, "22003");
  const eve = own.desk.visitAs({ name: "Eve", roles: ["viewer"] });
  for (const path of ["/stuck", "/stuck/replay", `/events/${idOf(5_001)}`]) {
    const { status, html } = await eve.get(path);
    expect([path, status]).toEqual([path, 200]);
    expect(html).not.toMatch(/action="\/(stuck|events)\/[^"]/);
  }
  const until = new Date().toISOString();
  for (const path of [
    ...["/stuck/replay", "/stuck/discard", "/stuck/retry-now", "/restore/preview", "/restore", "/tasks/1/cancel"],
    ...[`/events/${idOf(5_001)}/replay`, `/events/${idOf(5_001)}/discard`, "/bookings/acme/T-1"],
  ])
    expect([path, (await eve.post(path, { until, reason: "legal" })).status]).toEqual([path, 403]);
  expect(await countOpen()).toBe(1);
});

test("a letter that is discarded on its event's page is closed", async () => {
  await insertLetters(1, "22003");
  const ada = await own.desk.logIn();
  const path = `/events/${idOf(5_001)}`;
  expect(textOf((await ada.get(path)).html)).toContain("failed, with the code 22003");
  const { html } = await ada.submit(`${path}/discard`, { reason: "a test" });
  expect(textOf(html)).toMatch(
    /It is discarded, and will never be applied\..*Closed by Ada Closed as discarded: a test/,
  );
});

test("a task that is not known says what to do", async () => {
  const ada = await own.desk.logIn();
  const { status, html } = await ada.get("/tasks/unknown");
  expect([status, textOf(html)]).toEqual([404, expect.stringContaining("It can be begun again safely.")]);
});

/** The last tests of the file: from here on, a worker runs. */
test("a replay of all that match applies them, and is recorded", async () => {
  await insertLetters(20, "22003");
  await insertLetters(1, "STALLED");
  const ada = await own.desk.logIn();
  const { html } = await ada.get("/stuck/replay?code=22003");
  const until = /name="until" value="([^"]+)"/.exec(html)?.[1] ?? "";
  await own.startWorker();
  const { location } = await ada.post("/stuck/replay", { code: "22003", until });
  await waitFor(async () => {
    const text = textOf((await ada.get(location ?? "")).html);
    expect(text).toMatch(/done begun .*20 applied/);
  });
  expect(await countOpen()).toBe(1);
  const { rows } = await own.query("select command, operator, outcome, did from operator_actions");
  expect(rows).toEqual([
    {
      ...{ command: "dead-letters replay", operator: "Ada", outcome: "done" },
      did: { replayed: 20, applied: 20, dead: 0 },
    },
  ]);
});
