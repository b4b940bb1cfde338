import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { comparePlaces } from "@booking-events/bookings";
import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { partner } from "@booking-events/harness/partners";
import { writePartnersFile } from "@booking-events/harness/partners-file";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { createConsumer, createProducer, type Delivery, type Producer } from "@booking-events/queue";
import { type EventEnvelope, parseEnvelopeText } from "@booking-events/schema";
import { startRedis } from "@booking-events/scripts/services";
import { readDatabaseIdentity, writeDeadLetter } from "@booking-events/store";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runOps, spawnUnreadOps, startOps } from "../testing/run-ops.ts";

const { pool, url } = useTestDatabase({ maxConnections: 2 });
const asOf = new Date(Math.floor(Date.now() / 1_000) * 1_000 - 3_600_000).toISOString();
let folder: string;
let environment: Record<string, string>;
let database: string;
const cleanups: (() => Promise<void>)[] = [];

beforeEach(async () => {
  await pool.query("truncate dead_letters, booking_events");
  database = (await readDatabaseIdentity(pool)).id;
  folder = mkdtempSync(join(tmpdir(), "booking-events-import-"));
  environment = {
    ...{ DATABASE_URL: url, REDIS_URL: redisUrl(), QUEUE_PREFIX: uniquePrefix() },
    PARTNERS_FILE: join(folder, "partners.json"),
  };
  writePartnersFile(join(folder, "partners.json"), [partner("acme", {})]);
});

afterEach(async () => {
  await Promise.all(cleanups.splice(0).map((cleanup) => cleanup()));
  rmSync(folder, { recursive: true });
});

const line = (reference: string, more: object = {}) =>
  JSON.stringify({ consumerTripPartnerExternalReference: reference, consumerGivenName: "Canary", ...more });

function importLines(lines: string | Buffer, ...args: string[]) {
  writeFileSync(join(folder, "bookings"), lines);
  return importFile(join(folder, "bookings"), ...args);
}

function importFile(file: string, ...args: string[]) {
  return runOps(["import", file, "--partner", "acme", "--as-of", asOf, ...args], { environment });
}

/** Takes the events out of the queue, as a worker does. */
function takeEvents(): EventEnvelope[] {
  const events: EventEnvelope[] = [];
  const consumer = createConsumer({
    ...{ redisServers: redisUrl(), prefix: environment["QUEUE_PREFIX"] ?? "", concurrency: 10, maxHeldBytes: 1e6 },
    async handle({ text }: Delivery) {
      const parsed = parseEnvelopeText(text);
      if (!parsed.success) throw new Error(parsed.problem);
      events.push(parsed.envelope);
    },
    onError: () => {},
  });
  cleanups.push(() => consumer.close());
  consumer.start(database);
  return events;
}

/** To see how many events wait. */
function createTestProducer(): Producer {
  const { REDIS_URL = "", QUEUE_PREFIX = "" } = environment;
  const producer = createProducer({ redisServers: REDIS_URL, prefix: QUEUE_PREFIX, onError: () => {} });
  cleanups.push(() => producer.close());
  return producer;
}

test("each line becomes an event, which all have the sequence of the time and ids in the order of the lines", async () => {
  const ran = await importLines(`\ufeff${line("A")}\r\n\n${line("B", { price: 10.5 })}\n${line("A", { x: "é" })}`);
  expect(ran).toEqual({ exitCode: 0, stderr: "", stdout: "3 lines: 3 queued, 0 known already, 0 rejected.\n" });
  const events = takeEvents();
  await waitFor(() => expect(events).toHaveLength(3));
  events.sort((one, other) => (one.eventId < other.eventId ? -1 : 1));
  expect(events).toMatchObject([
    { kind: "create", partner: "acme", payload: { consumerTripPartnerExternalReference: "A" } },
    { payload: { consumerTripPartnerExternalReference: "B", price: 10.5 } },
    { payload: { consumerTripPartnerExternalReference: "A", x: "é" } },
  ]);
  for (const { eventId, sequence, receivedAt } of events) {
    expect(eventId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(Number.parseInt(eventId.replace("-", "").slice(0, 12), 16)).toBe(Date.parse(asOf));
    expect({ sequence, receivedAt }).toEqual({ sequence: Date.parse(asOf) * 1_000, receivedAt: asOf });
  }
});

test("the import runs again: what waits or is a dead letter is not queued again", async () => {
  const lines = `${line("A")}\n${line("B")}\n`;
  await importLines(lines);
  expect((await importLines(lines)).stdout).toBe("2 lines: 0 queued, 2 known already, 0 rejected.\n");
  const events = takeEvents();
  await waitFor(() => expect(events).toHaveLength(2));
  await writeDeadLetter(pool, {
    ...{ eventId: events[0]?.eventId ?? "", partner: "acme", kind: "create", referenceKind: "trip", reference: "A" },
    ...{ sequence: 1, errorCode: "22003", error: "", attempts: 1, envelope: Buffer.from("{}") },
  });
  const ran = await importLines(`${lines}${line("C")}\n`, "--json");
  expect(JSON.parse(ran.stdout)).toEqual({ lines: 3, queued: 2, known: 1, rejected: 0 });
});

test("a line corrected in place keeps its number, so it wins over earlier lines of its booking", async () => {
  const lines = (name: unknown) => `${line("A")}\n${line("A", { consumerGivenName: name })}\n${line("B")}\n`;
  const { stdout, stderr } = await importLines(lines(null));
  expect(stdout).toBe("3 lines: 2 queued, 0 known already, 1 rejected.\n");
  expect(stderr).toMatch(/Correct the rejected lines in place, and run the same command on the whole file again\./);
  expect((await importLines(lines("Corrected"))).stdout).toBe("3 lines: 1 queued, 2 known already, 0 rejected.\n");
  const events = takeEvents();
  await waitFor(() => expect(events).toHaveLength(3));
  const inOrder = events.toSorted((one, other) =>
    comparePlaces({ id: one.eventId, sequence: one.sequence }, { id: other.eventId, sequence: other.sequence }),
  );
  expect(inOrder.map(({ payload }) => payload.consumerGivenName)).toEqual(["Canary", "Corrected", "Canary"]);
  expect(inOrder[1]?.idempotencyKey).toMatch(/-2$/);
});

test("bad lines are reported with their numbers and without their values, and all others are queued", async () => {
  const lines = [
    line("A"),
    line("B", { agentEmail: "canary@", consumerPhone: null }),
    '{"consumerGivenName":"Canary"',
    '{"a":"Canary","a":1}',
    '["Canary"]',
    line("C", { number: 1 }).replace(":1}", ":1e1000}"),
    `"${"Canary".repeat(20_000)}"`,
    line("D"),
    line("E", { "canary\0": 1, "canary\ufffd": 2 }),
  ];
  const bytes = Buffer.concat([Buffer.from(`${lines.join("\n")}\n`), Buffer.from([0xff, 0x0a])]);
  const rejected = join(folder, "rejected");
  const { exitCode, stdout, stderr } = await importLines(bytes, "--rejected", rejected);
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "10 lines: 2 queued, 0 known already, 8 rejected.\n" });
  expect(stderr.split("\n")).toEqual([
    expect.stringMatching(/^Line 2: consumerPhone: Must be a string/),
    expect.stringMatching(/^Line 2: agentEmail: Must be one e-mail address/),
    "Line 3: The line is not valid JSON. The error is at column 30.",
    "Line 4: The line has a duplicate key, at column 15.",
    "Line 5: The line is not a JSON object.",
    expect.stringMatching(/^Line 6: number: Must be a number of at most 1,000 digits/),
    "Line 7: The line is longer than 65536 bytes.",
    expect.stringMatching(/^Line 9: The line has two names that differ only in U\+0000/),
    "Line 10: The line is not UTF-8.",
    expect.stringContaining("Correct the rejected lines"),
    "",
  ]);
  const written = readFileSync(rejected, "utf8");
  const report = written.trimEnd().split("\n");
  expect(report.map((one) => JSON.parse(one).line)).toEqual([2, 3, 4, 5, 6, 7, 9, 10]);
  expect(JSON.parse(report[0] ?? "").violationList[0].propertyPath).toEqual(["consumerPhone"]);
  expect(stderr + written).not.toMatch(/canary/i);
});

test("the report of rejected lines replaces no bookings, and must be writable", async () => {
  const bookings = join(folder, "bookings");
  expect(await importLines(`${line("A")}\n`, "--rejected", bookings)).toMatchObject({ exitCode: 2 });
  expect(readFileSync(bookings, "utf8")).toBe(`${line("A")}\n`);
  const ran = await importFile(bookings, "--rejected", join(folder, "no", "x"));
  expect(ran).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("can't be written (ENOENT)") });
});

test("numbers keep their digits, and what a database cannot store is replaced", async () => {
  await importLines(`${line("A", { "note\0": "\ud800", number: 1 }).replace(":1}", ":9007199254740993}")}\n`);
  const events = takeEvents();
  await waitFor(() => expect(events).toHaveLength(1));
  expect(JSON.stringify(events[0]?.payload)).toMatch(/"note\ufffd":"\ufffd","number":9007199254740993\}$/);
});

test.each([
  ["nobody reads the reports", { isBegunToRead: false }],
  ["their reader goes away", { isBegunToRead: true }],
])("every line is imported, though %s", { timeout: 60_000 }, async (_what, reader) => {
  // The reports of these are longer than a pipe holds, so the import waits for the reader.
  const rejected = Array.from({ length: 5_000 }, () => line("R", { agentEmail: "canary@" }));
  const file = join(folder, "bookings");
  writeFileSync(file, [line("A"), ...rejected, line("B")].join("\n"));
  expect(await spawnUnreadOps(["import", file, "--partner", "acme", "--as-of", asOf], environment, reader)).toBe(1);
  const again = await importFile(file, "--json");
  expect(JSON.parse(again.stdout)).toEqual({ lines: 5_002, queued: 0, known: 2, rejected: 5_000 });
});

test("it waits for room, so at most a tenth of MAX_BACKLOG waits because of it", async () => {
  environment["MAX_BACKLOG"] = "50";
  let describe = () => "";
  writeFileSync(join(folder, "bookings"), Array.from({ length: 12 }, (_, index) => line(`T${index}`)).join("\n"));
  const importing = runOps(["import", join(folder, "bookings"), "--partner", "acme", "--as-of", asOf, "--json"], {
    environment,
    atSignal(describeInterruption) {
      describe = describeInterruption;
    },
  });
  const producer = createTestProducer();
  await waitFor(async () => expect(await producer.measureLoad()).toMatchObject({ backlog: 5 }));
  await waitFor(() =>
    expect(describe()).toMatch(/^The import was interrupted\. 12 lines: 5 queued, 0 known already, 0 rejected\. /),
  );
  const events = takeEvents();
  expect(JSON.parse((await importing).stdout)).toEqual({ lines: 12, queued: 12, known: 0, rejected: 0 });
  await waitFor(() => expect(events).toHaveLength(12));
});

test("--dry-run checks the lines, and needs neither Redis nor PostgreSQL", async () => {
  environment = { PARTNERS_FILE: environment["PARTNERS_FILE"] ?? "" };
  const ran = await importLines(`${line("A")}\n{}\n`, "--dry-run", "--kind", "delete");
  expect(ran).toMatchObject({ exitCode: 1, stdout: "2 lines: 1 valid, 1 rejected.\n" });
});

test("lines come from standard input, too", async () => {
  const args = ["import", "-", "--partner", "acme", "--as-of", asOf];
  const ran = await runOps(args, { environment, stdin: `${line("A")}\n` });
  expect(ran).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("1 queued") });
});

test.each([
  ["a duration", "2h", /Give a time with its zone/],
  ["a time without a zone", "2026-11-20T12:00:00", /Give a time with its zone/],
  ["a time in the future", "2999-01-01", /in the future/],
  ["a time of long ago", "2020-01-01", /more than 30 days ago.*RETENTION_DAYS/s],
])("--as-of refuses %s", async (_what, time, message) => {
  const ran = await runOps(["import", "-", "--partner", "acme", "--as-of", time], { environment });
  expect(ran).toMatchObject({ exitCode: 2, stderr: expect.stringMatching(message) });
});

test.each([
  ["RETENTION_DAYS", { RETENTION_DAYS: "7" }, null, /^No line would be applied, since RETENTION_DAYS is 7, /],
  ["the log", {}, "2026-11-15T00:00:00Z", /^No line would be applied, since the log begins at 2026-11-15T00/],
])("nothing is imported that would expire by %s", async (_what, settings, horizon, message) => {
  await pool.query("update log_retention set horizon = $1", [horizon]);
  cleanups.push(async () => void (await pool.query("update log_retention set horizon = null")));
  const file = join(folder, "bookings");
  writeFileSync(file, `${line("A")}\n${line("B")}\n`);
  const now = new Date("2026-11-20T12:00:00Z");
  const args = ["import", file, "--partner", "acme", "--as-of", "2026-11-12T12:00:00Z"];
  const ran = await runOps(args, { environment: { ...environment, ...settings }, now });
  expect(ran).toEqual({ exitCode: 1, stdout: "", stderr: expect.stringMatching(message) });
  expect(ran.stderr.split("\n")).toHaveLength(2);
  const producer = createTestProducer();
  await waitFor(async () => expect(await producer.measureLoad()).toMatchObject({ backlog: 0 }));
});

const items = ["A", "B"].map((reference) => line(reference));
test.each<[what: string, content: string | Buffer, message: RegExp]>([
  ["a JSON array on one line", `[${items.join(",")}]`, /is not JSON lines/],
  ["a JSON array with one item on its first line", `\ufeff\n[${items.join(",\n")}]\n`, /is not JSON lines/],
  ["items of a JSON array", `${items.join(",\n")}\n`, /is not JSON lines/],
  ["an array in an object", `{"bookings":[\n${items.join(",\n")}\n]}\n`, /is not JSON lines/],
  ["CSV", "reference,name\nA,Canary\nB,Canary\n", /is not JSON lines/],
  ["UTF-16", Buffer.from(items.join("\n"), "utf16le"), /is not JSON lines/],
  ["gzip", gzipSync(items.join("\n")), /is not JSON lines/],
  ["nothing", "", /is empty/],
  ["blank lines only", "\ufeff\n  \r\n", /is empty/],
])("%s gets one sentence about the file, and nothing is imported", async (_what, content, message) => {
  for (const args of [[], ["--dry-run"], ["--kind", "delete"]]) {
    const ran = await importLines(content, ...args);
    expect(ran).toEqual({ exitCode: 1, stdout: "", stderr: expect.stringMatching(message) });
    expect(ran.stderr).toMatch(/^[^\n]+ Nothing was imported\.\n$/);
    expect(ran.stderr).not.toMatch(/canary/i);
  }
  const producer = createTestProducer();
  await waitFor(async () => expect(await producer.measureLoad()).toMatchObject({ backlog: 0 }));
});

test("Ctrl-C ends the import with what was done and how to go on", { timeout: 60_000 }, async () => {
  environment["MAX_BACKLOG"] = "50";
  const file = join(folder, "bookings");
  writeFileSync(file, Array.from({ length: 12 }, (_, index) => line(`T${index}`)).join("\n"));
  const args = ["import", file, "--partner", "acme", "--as-of", asOf];
  const { kill, ran } = await startOps(args, environment);
  const producer = createTestProducer();
  await waitFor(async () => expect(await producer.measureLoad()).toMatchObject({ backlog: 5 }));
  kill("SIGINT");
  const { exitCode, stdout, stderr } = await ran();
  expect({ exitCode, stdout }).toEqual({ exitCode: 130, stdout: "" });
  expect(stderr).toMatch(
    /^The import was interrupted\. 12 lines: [05] queued, 0 known already, 0 rejected\. To go on, run the same command again: .*\n$/,
  );
  const events = takeEvents();
  expect((await importFile(file)).stdout).toMatch(/^12 lines: \d+ queued, \d+ known already, 0 rejected\.\n$/);
  await waitFor(() => expect(new Set(events.map(({ eventId }) => eventId)).size).toBe(12));
});

test.each([
  ["a missing file", (ran: typeof importFile) => ran("/no/such/file"), /can't be read \(ENOENT\)/],
  ["a folder", (ran: typeof importFile) => ran(tmpdir()), /can't be read \(EISDIR\)/],
  ["a name that is too long", (ran: typeof importFile) => ran("x".repeat(300)), /can't be read \(ENAMETOOLONG\)/],
  [
    "an unknown partner",
    (ran: typeof importFile) => ran("-", "--partner", "acmee"),
    /no partner acmee in .*\. Nothing was imported\./,
  ],
])("%s fails with a sentence", async (_what, run, message) => {
  expect(await run(importFile)).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(message) });
});

test("while Redis is unavailable, nothing is imported", async () => {
  environment["REDIS_URL"] = "redis://127.0.0.1:1";
  const ran = await importLines(`${line("A")}\n`);
  expect(ran).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/Redis does not answer \(ECONNREFUSED\)\..*Nothing was imported/),
  });
});

test("if Redis stops while the import waits for room, the message names Redis", { timeout: 60_000 }, async () => {
  const server = await startRedis({ dir: join(folder, "redis") });
  cleanups.push(() => server.stop());
  environment = { ...environment, REDIS_URL: server.url, MAX_BACKLOG: "50" };
  const producer = createTestProducer();
  const importing = importLines(Array.from({ length: 12 }, (_, index) => line(`T${index}`)).join("\n"));
  await waitFor(async () => expect(await producer.measureLoad()).toMatchObject({ backlog: 5 }));
  await server.stop();
  expect(await importing).toEqual({
    exitCode: 1,
    stdout: "",
    stderr: "Redis does not answer. Check that it runs, and run the same command again.\n",
  });
});
