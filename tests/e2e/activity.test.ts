import { checkReceiver } from "@booking-events/conformance";
import { uniquePrefix, waitFor } from "@booking-events/harness";
import { partner } from "@booking-events/harness/partners";
import { noLimit, writePartnersFile } from "@booking-events/harness/partners-file";
import type { Activity } from "@booking-events/schema";
import { beforeEach, expect, test } from "vitest";
import { postAccepted, postOnce } from "./post-event.ts";
import { type RunningApp, shareSurroundings } from "./surroundings.ts";

const secret = "a-secret-of-the-activity-tests-012345678";
const otherSecret = "a-secret-of-another-partner-0123456789ab";
const heldSecret = "a-secret-of-a-partner-on-hold-0123456789";
const shared = shareSurroundings(secret);
const expiresAt = "2099-01-01T00:00:00Z";

beforeEach(() => {
  shared.environment["QUEUE_PREFIX"] = uniquePrefix();
  writePartnersFile(shared.environment["PARTNERS_FILE"] ?? "", [
    partner("acme", { [secret]: expiresAt, "a-secret-of-yesterday": "2026-06-01T00:00:00Z" }, { rateLimit: noLimit }),
    partner("zenith", { [otherSecret]: null }),
    partner("held", { [heldSecret]: null }, { held: true }),
  ]);
});

async function ask(lookup: RunningApp, bySecret = secret, query = ""): Promise<{ status: number; body: Activity }> {
  const response = await fetch(`${lookup.url}/booking-event/activity/${bySecret}${query}`);
  return { status: response.status, body: (await response.json()) as Activity };
}

/** What is counted is written within a second, and what was found is kept for some seconds. */
async function untilActivity(lookup: RunningApp, expected: object, bySecret = secret): Promise<Activity> {
  let found: Activity | undefined;
  await waitFor(
    async () => {
      const { status, body } = await ask(lookup, bySecret);
      expect([status, body]).toMatchObject([200, expected]);
      found = body;
    },
    { timeoutMs: 30_000 },
  );
  return found as Activity;
}

test("a partner sees what it sent wrong, what came of the rest, and nothing of others", async () => {
  const [ingest, worker, lookup] = await Promise.all([
    shared.start("ingest"),
    shared.start("worker"),
    shared.start("lookup"),
  ]);
  const key = { headers: { "Idempotency-Key": "K" } };
  await postAccepted(ingest, { secret, reference: "TRIP-1", fields: { consumerPhone: "canary" }, ...key });
  const reused = await postAccepted(ingest, {
    secret,
    reference: "TRIP-1",
    fields: { agentTimezone: "canary" },
    ...key,
  });
  await postOnce(ingest, { secret, reference: "TRIP-2", headers: { "X-Dry-Run": "true" } });
  const fields = { consumerPhone: null, "canary <script>": { "canary\u0000": [{}] }, "a.b": "\ud800" };
  for (let count = 0; count < 3; count += 1) await postOnce(ingest, { secret, reference: "", fields });
  await fetch(`${ingest.url}/booking-event/create/${secret}`, { method: "POST", body: "canary" });
  await postOnce(ingest, { secret: "a-secret-of-yesterday", reference: "TRIP-3" });
  await postAccepted(ingest, { secret: otherSecret, reference: "TRIP-1" });

  const expected = {
    partner: "acme",
    isHeld: false,
    waiting: { events: 0, oldestEventId: null, oldestAt: null, isComplete: true },
    violations: expect.arrayContaining([
      expect.objectContaining({ field: "consumerPhone", code: "null", count: 3 }),
      expect.objectContaining({ field: "consumerTripPartnerExternalReference", code: "missing", count: 3 }),
    ]),
    warnings: expect.arrayContaining([
      expect.objectContaining({
        ...{ field: "consumerPhone", code: "unreadable-phone", count: 1 },
        advice: expect.stringContaining("E.164"),
      }),
      expect.objectContaining({ field: "agentTimezone", code: "unreadable-time-zone", lastRequestId: reused }),
    ]),
    notices: [
      { code: "key-reused", count: 1, lastEventId: reused },
      { code: "replaced", count: 1, lastEventId: reused },
    ],
    failed: [],
    secrets: [
      { id: "s1", isInUse: true, isValid: true, expiresAt },
      { id: "s2", isInUse: false, isValid: false },
    ],
    limits: { ...noLimit, bytesToday: expect.toSatisfy((bytes: number) => bytes > 100) },
  };
  await waitFor(async () => expect((await ask(lookup)).body.notices).toHaveLength(2), { timeoutMs: 30_000 });
  const activity = await untilActivity(lookup, expected);

  const hour = activity.hours.find(({ answers }) => answers.length > 0);
  const answers = activity.hours.flatMap((one) => one.answers);
  expect(answers).toEqual(
    expect.arrayContaining([
      { status: 422, code: "invalid-data", count: 3 },
      { status: 200, code: "accepted", count: 2 },
      { status: 200, code: "dry-run-passed", count: 1 },
      { status: 415, code: "unsupported-type", count: 1 },
      { status: 403, code: "expired-secret", count: 1 },
    ]),
  );
  expect(hour).toMatchObject({ outcomes: { created: 1, updated: 1 }, isSample: false });
  // A busy machine may shed load.
  const refusals = activity.refusals.filter(({ status }) => status < 500);
  expect(refusals).toHaveLength(5);
  expect(refusals.at(-1)).toMatchObject({
    ...{ status: 422, code: "invalid-data", kind: "create", secretId: "s1" },
    violations: expect.arrayContaining(["consumerPhone:null"]),
  });
  expect(JSON.stringify(activity)).not.toMatch(/canary|script|a-secret|127\.0\.0\.1|TRIP/);

  const other = await untilActivity(lookup, { partner: "zenith", violations: [], notices: [] }, otherSecret);
  expect(other.refusals).toEqual([]);
  expect(other.hours.flatMap((one) => one.answers)).toEqual([{ status: 200, code: "accepted", count: 1 }]);

  const today = new Date().toISOString().slice(0, 10);
  expect((await ask(lookup, secret, `?day=${today}`)).body.violations).toEqual(activity.violations);
  const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
  const before = await ask(lookup, secret, `?day=${yesterday}`);
  expect(before.body).toMatchObject({ violations: [], warnings: [], refusals: [], notices: [] });
  expect(before.body.hours).toHaveLength(24);
  expect(await ask(lookup, secret, "?day=2026-01-01")).toMatchObject({ status: 400, body: { code: "invalid-day" } });

  // What waits has no worker any more.
  await worker.stop("SIGTERM");
  const waiting = await postAccepted(ingest, { secret, reference: "TRIP-9" });
  await untilActivity(lookup, { waiting: { events: 1, oldestEventId: waiting } });
}, 120_000);

test("a partner on hold may ask why, and a stranger may not ask", async () => {
  const [ingest, lookup] = await Promise.all([shared.start("ingest"), shared.start("lookup")]);
  expect((await postOnce(ingest, { secret: heldSecret, reference: "TRIP-1" })).status).toBe(503);
  const { hours } = await untilActivity(lookup, { isHeld: true, refusals: [{ code: "partner-held" }] }, heldSecret);
  expect(hours.flatMap(({ answers }) => answers)).toEqual([{ status: 503, code: "partner-held", count: 1 }]);
  for (const stranger of ["unknown", "a-secret-of-yesterday", ""])
    expect(await ask(lookup, stranger)).toMatchObject({ status: 403, body: { code: "invalid-secret" } });
  const byHeader = await fetch(`${lookup.url}/booking-event/activity`, {
    headers: { Authorization: `Bearer ${secret}` },
  });
  expect(await byHeader.json()).toMatchObject({ partner: "acme" });
});

test("a thousand questions at once share what is found, and receipts are answered meanwhile", async () => {
  const lookup = await shared.start("lookup");
  const flood = Array.from({ length: 1_000 }, () => ask(lookup));
  const receipt = await fetch(
    `${lookup.url}/booking-event/receipt/${otherSecret}/01a1fb0c-d72c-7345-a7ee-38bfa851309c`,
  );
  expect(receipt.status).toBe(404);
  const answers = await Promise.all(flood);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  expect(new Set(answers.map(({ body }) => body.at)).size).toBeLessThan(10);
});

test("the program by which partners check a receiver finds nothing wrong with the questions", async () => {
  const [ingest, , lookup] = await Promise.all([
    shared.start("ingest"),
    shared.start("worker"),
    shared.start("lookup"),
  ]);
  const [url, lookupUrl] = [new URL(ingest.url), new URL(lookup.url)];
  const report = await checkReceiver({ url, lookupUrl, secret, only: ["lookup/"] });
  expect(report.checks.filter(({ outcome }) => outcome !== "passed")).toEqual([]);
  expect(report.passed).toBeGreaterThan(10);
  const silent = await checkReceiver({ url, secret, only: ["lookup/"], dryRunOnly: true });
  expect(silent).toMatchObject({ skipped: report.passed - 2, failed: 0, lookupProblem: expect.any(String) });
});
