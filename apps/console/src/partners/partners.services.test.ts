import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { partner } from "@booking-events/harness/partners";
import { writePartnersFile } from "@booking-events/harness/partners-file";
import { sampleEvent } from "@booking-events/harness/sample-event";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { openRecords } from "@booking-events/queue";
import { writeDeadLetter } from "@booking-events/store";
import { afterAll, beforeEach, expect, test } from "vitest";
import { useConsole } from "../testing/start-console.ts";
import { textOf } from "../testing/text-of.ts";

const { pool, testPool, url } = useTestDatabase();
const folder = mkdtempSync(join(tmpdir(), "console-partners-"));
afterAll(() => rmSync(folder, { recursive: true }));
const file = join(folder, "partners.json");
const prefix = uniquePrefix();
const desk = useConsole(() => ({
  ...{ DATABASE_URL: url, REDIS_URL: redisUrl(), QUEUE_PREFIX: prefix, PARTNERS_FILE: file },
}));

const hostile = "<b>Acme</b>\u202e";

beforeEach(async () => {
  await pool.query("truncate operator_actions");
  writePartnersFile(file, [
    partner("acme", { "secret-1": null, "secret-2": "2026-01-02T00:00:00Z" }, { name: hostile }),
    partner("empty", {}),
  ]);
});

const actions = async () =>
  (await pool.query("select operator, command, arguments, outcome from operator_actions")).rows;

test("the list says who may send", async () => {
  const { html } = await (await desk.logIn()).get("/partners");
  expect(textOf(html)).toContain("2 in the partners file");
  expect(html).toContain('<a href="/partners/acme">acme</a>');
  expect(html).not.toContain("<b>Acme");
  expect(textOf(html)).toContain("<b>Acme</b>⟨U+202E⟩");
  expect(textOf(html)).toMatch(/empty no valid secret 0 0/);
});

test("a partner's page shows its refusals with reasons, and its secrets without anything of them", async () => {
  const records = openRecords({ redisServers: redisUrl(), prefix, connectionName: "test", onError: () => {} });
  const refusal = {
    ...{ requestId: "0199a6f2-7c1e-7d0a-9d4b-3f1a2b4c5d6e", at: new Date(), partner: "acme", secretId: "s1" },
    ...{ kind: "create", status: 422, code: "invalid-data", ip: "192.0.2.1" },
  };
  await waitFor(() =>
    records
      .writeRefusals([
        { ...refusal, violations: ["consumerPhone:null"] },
        { ...refusal, violations: ["consumerPhone:null", "agentEmail:malformed"] },
      ])
      .then(() => true),
  );
  const hourOf = (ageMs: number) => new Date(Date.now() - ageMs).toISOString().slice(0, "2026-11-22T13".length);
  const accepted = { partner: "acme", hour: hourOf(0), status: 200, code: "accepted", count: 1_234 };
  await records.addAnswerCounts([
    accepted,
    { ...accepted, code: "dry-run", count: 9 },
    { ...accepted, hour: hourOf(86_400_000), status: 422, code: "invalid-data", count: 2 },
    { ...accepted, hour: hourOf(7 * 86_400_000), count: 5 },
  ]);
  records.close();
  const { status, html } = await (await desk.logIn()).get("/partners/acme");
  expect(status).toBe(200);
  const text = textOf(html);
  expect(text).toContain("1,234 accepted and 2 refused; the week before, 5 and 0.");
  expect(text).toContain("invalid-data 2 consumerPhone:null (2), agentEmail:malformed (1)");
  expect(text).toMatch(/s1 valid .* never .* s2 expired/);
  expect(html).not.toMatch(/[0-9a-f]{64}/);
});

test("whoever operates holds a partner, and releases it, and both are recorded", async () => {
  const browser = await desk.logIn("Ada");
  expect((await browser.get("/partners/acme")).html).toContain('action="/partners/acme/hold"');
  const held = await browser.submit("/partners/acme/hold");
  expect(textOf(held.html)).toContain("acme is on hold: its events get 503, and its sender keeps them.");
  expect(held.html).toContain('action="/partners/acme/release"');
  expect(textOf((await browser.get("/partners/acme")).html)).not.toContain("its sender keeps them.");
  expect(textOf((await browser.get("/")).html)).toContain("Partner acme is on hold");
  expect(textOf((await browser.submit("/partners/acme/release")).html)).toContain("acme is released");
  expect(await actions()).toEqual([
    { operator: "Ada", command: "partners hold", arguments: { partner: "acme" }, outcome: "done" },
    { operator: "Ada", command: "partners release", arguments: { partner: "acme" }, outcome: "done" },
  ]);
});

test("a viewer sees no form, and cannot post one", async () => {
  const browser = desk.visitAs({ name: "Eve", roles: ["viewer"] });
  expect((await browser.get("/partners/acme")).html).not.toContain("/hold");
  expect(await browser.post("/partners/acme/hold")).toMatchObject({
    status: 403,
    html: expect.stringContaining("Only who has the role operator may do this. You have: viewer."),
  });
  expect(await actions()).toEqual([]);
});

test("a partner that does not exist has no page, and cannot be held", async () => {
  const browser = await desk.logIn();
  expect((await browser.get("/partners/nobody")).status).toBe(404);
  expect((await browser.post("/partners/nobody/hold")).status).toBe(303);
  expect(await actions()).toMatchObject([{ command: "partners hold", outcome: "refused" }]);
});

test("a test partner is marked, and what it has sent is found by search or by its name, and on no page of the others", async () => {
  writePartnersFile(file, [partner("acme-test", { "secret-1": null }, { test: true })]);
  const payload = { consumerTripPartnerExternalReference: "TRIP-T" };
  const event = sampleEvent(1, { partner: "acme-test", test: true, payload });
  const { eventId, kind, sequence } = event;
  await writeDeadLetter(testPool, {
    ...{ eventId, kind, sequence, partner: "acme-test", referenceKind: "trip", reference: "TRIP-T" },
    ...{ errorCode: "22012", error: "A bug.", attempts: 1, envelope: Buffer.from(JSON.stringify(event)) },
  });
  const browser = await desk.logIn();
  const text = async (path: string) => textOf((await browser.get(path)).html);
  expect(await text("/partners")).toContain("acme-test enabled test");
  expect(await text("/search?q=TRIP-T")).toMatch(/dead letter test .*acme-test/);
  for (const path of ["/", "/stuck", "/arrivals", "/events"]) expect(await text(path)).not.toContain("acme-test");
  expect(await text("/stuck?partner=acme-test")).toContain("22012");
  expect(await text(`/events/${eventId}`)).toContain("The event is of a test partner.");
  const done = await browser.submit(`/events/${eventId}/discard`, { reason: "a test" });
  expect(textOf(done.html)).toContain("It is discarded");
  expect(await actions()).toMatchObject([
    { command: "dead-letters discard", arguments: { test: true }, outcome: "done" },
  ]);
});

test("whoever operates exports a partner's bookings, which is recorded; viewers do not", async () => {
  const browser = await desk.logIn("Ada");
  expect((await browser.get("/partners/acme")).html).toContain('action="/partners/acme/bookings.csv"');
  const file = await browser.post("/partners/acme/bookings.csv");
  expect(file.headers.get("content-disposition")).toBe('attachment; filename="bookings-acme.csv"');
  expect(file.html).toMatch(/^bookingId,partner,referenceKind,reference,state,.*\r\n$/);
  expect(await actions()).toMatchObject([{ operator: "Ada", command: "export bookings", outcome: "done" }]);
  const unknown = await browser.post("/partners/nobody/bookings.csv");
  expect(unknown.status).toBeGreaterThanOrEqual(400);
  expect(unknown.html).toContain("nobody");
  const viewer = desk.visitAs({ name: "Eve", roles: ["viewer"] });
  expect((await viewer.post("/partners/acme/bookings.csv")).status).toBe(403);
});
