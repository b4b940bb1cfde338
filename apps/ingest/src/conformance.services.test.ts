import { checkReceiver } from "@booking-events/conformance";
import { acmeSecret } from "@booking-events/harness/partners";
import { bookingReferenceOf, referenceKindOf } from "@booking-events/schema";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startIngest, type TestIngest } from "./testing/start-ingest.ts";

/** Partners check receivers and senders with this program, so ours must pass it. */
let ingest: TestIngest;
/** One check waits until the service gives up on a slow body. */
const impatient = { requestTimeoutMs: 1_000, headersTimeoutMs: 1_000, timeoutCheckIntervalMs: 100 };

beforeAll(async () => {
  ingest = await startIngest({}, impatient);
});
afterAll(() => ingest.close());

function check(options: Partial<Parameters<typeof checkReceiver>[0]> = {}) {
  return checkReceiver({ url: new URL(`http://127.0.0.1:${ingest.port}`), secret: acmeSecret, ...options });
}

test("the service passes every check, and every booking of the checks is deleted in the end", async () => {
  const report = await check();

  // Lookup answers questions: tests/e2e/activity.test.ts.
  expect(report.checks.filter(({ outcome, name }) => outcome !== "passed" && !name.startsWith("lookup/"))).toEqual([]);
  expect(report.passed).toBeGreaterThan(250);
  const state = new Map<string, string>();
  for (const { kind, payload } of await ingest.queuedEvents()) {
    state.set(`${referenceKindOf(payload)} ${bookingReferenceOf(payload)}`, kind);
  }
  expect(state.size).toBeGreaterThan(50);
  expect([...state].filter(([booking, kind]) => kind !== "delete" || !booking.includes(" conformance-"))).toEqual([]);
});

test("the service passes every check as a dry run, and stores nothing", async () => {
  const before = await ingest.queuedEvents();

  const report = await check({ dryRunOnly: true });

  const others = report.checks.filter(({ name }) => !name.startsWith("lookup/"));
  expect(others.filter(({ outcome }) => outcome !== "passed")).toMatchObject([
    { name: "operations/event-ids", outcome: "skipped" },
    { name: "dry-run/header", outcome: "skipped" },
    { name: "dry-run/refused", outcome: "skipped" },
    { name: "dry-run/live", outcome: "skipped" },
  ]);
  expect(await ingest.queuedEvents()).toEqual(before);
});

test("the service passes what the specification alone demands", async () => {
  const report = await check({ profile: "spec" });

  expect(report.checks.filter(({ outcome }) => outcome !== "passed")).toEqual([]);
  expect(report.passed).toBeGreaterThan(40);
});

test.each([
  [65_535, ["sizes/largest-body"]],
  [65_537, ["sizes/body", "sizes/announced-body", "sizes/chunked-body"]],
])("a service that accepts %i bytes fails exactly the checks of that limit", async (bodyLimitBytes, names) => {
  const other = await startIngest({ bodyLimitBytes }, impatient);
  try {
    const url = new URL(`http://127.0.0.1:${other.port}`);
    const { checks } = await checkReceiver({ url, secret: acmeSecret, only: ["sizes/", "bodies/", "forms/"] });

    expect(checks.filter(({ outcome }) => outcome === "failed").map(({ name }) => name)).toEqual(names);
  } finally {
    await other.close();
  }
});
