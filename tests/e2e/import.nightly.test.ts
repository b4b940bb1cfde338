import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "@booking-events/harness";
import { beforeEach, expect, test } from "vitest";
import { postAccepted } from "./post-event.ts";
import { prepareSurroundings, type RunningApp } from "./surroundings.ts";

const secret = "a-secret-of-the-import-tests-0123456789";
const surroundings = prepareSurroundings(secret);
let ingest: RunningApp;

beforeEach(async () => {
  [ingest] = await Promise.all([surroundings().start("ingest"), surroundings().start("worker")]);
});

const payload = (reference: string, name: string) =>
  JSON.stringify({ consumerTripPartnerExternalReference: reference, consumerGivenName: name });

function post(kind: string, reference: string, name: string): Promise<string> {
  return postAccepted(ingest, { secret, kind, reference, fields: { consumerGivenName: name } });
}

function startImport(lines: string[], asOf: Date) {
  const file = `${surroundings().environment["PARTNERS_FILE"]}.ndjson`;
  writeFileSync(file, `${lines.join("\n")}\n`);
  return spawn(
    process.execPath,
    ["apps/ops/dist/main.js", "import", file, "--partner", "acme", "--as-of", asOf.toISOString(), "--json"],
    { env: { ...surroundings().environment, OPERATOR: "tester" }, stdio: ["ignore", "pipe", "pipe"] },
  );
}

async function runImport(lines: string[], asOf: Date) {
  const child = startImport(lines, asOf);
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  expect({ exitCode: child.exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  return JSON.parse(stdout);
}

async function read(sql: string) {
  return (await surroundings().pool.query(sql)).rows;
}

const bookings = () =>
  read("select reference, state, payload ->> 'consumerGivenName' as name from bookings order by reference");

test("an import wins over what partners sent before its time, and loses to what they sent after it", async () => {
  await post("create", "BEFORE", "Canary sent");
  await post("delete", "GONE-BEFORE", "");
  await waitFor(async () => expect(await bookings()).toHaveLength(2));
  await sleep(2);
  const asOf = new Date();
  await sleep(2);
  await post("create", "AFTER", "Canary sent");
  await post("delete", "GONE-AFTER", "");
  await waitFor(async () => expect(await bookings()).toHaveLength(4));
  const names = ["BEFORE", "GONE-BEFORE", "AFTER", "GONE-AFTER", "NEW", "TWICE"];
  const lines = [...names.map((name) => payload(name, "Canary imported")), payload("TWICE", "Canary second")];
  const applied = async () => expect(await read("select from booking_events")).toHaveLength(4 + lines.length);

  expect(await runImport(lines, asOf)).toEqual({ lines: 7, queued: 7, known: 0, rejected: 0 });
  await waitFor(applied);
  const expected = [
    { reference: "AFTER", state: "active", name: "Canary sent" },
    { reference: "BEFORE", state: "active", name: "Canary imported" },
    { reference: "GONE-AFTER", state: "deleted", name: "Canary imported" },
    { reference: "GONE-BEFORE", state: "active", name: "Canary imported" },
    { reference: "NEW", state: "active", name: "Canary imported" },
    { reference: "TWICE", state: "active", name: "Canary second" },
  ];
  expect(await bookings()).toEqual(expected);

  const changes = await read("select id from booking_changes");
  expect(await runImport(lines, asOf)).toEqual({ lines: 7, queued: 0, known: 7, rejected: 0 });
  // A line more at the start of the file moves all others, and still changes nothing.
  expect(await runImport([payload("MORE", "Canary"), ...lines], asOf)).toMatchObject({ queued: 8 });
  await waitFor(async () => expect(await read("select from booking_events")).toHaveLength(4 + 7 + 8));
  expect((await bookings()).filter(({ reference }) => reference !== "MORE")).toEqual(expected);
  expect(await read("select id from booking_changes where reference <> 'MORE'")).toHaveLength(changes.length);
});

test("a rejected line that is corrected in place wins over earlier lines, and an imported one with a later time", async () => {
  const asOf = new Date();
  const lines = (name: string) => [payload("A", "Canary first"), name, payload("B", "Canary")];
  const child = startImport(lines(payload("A", "Canary second").slice(1)), asOf);
  const [stdout] = await Promise.all([text(child.stdout), once(child, "close")]);
  expect(JSON.parse(stdout)).toEqual({ lines: 3, queued: 2, known: 0, rejected: 1 });
  await waitFor(async () => expect(await bookings()).toHaveLength(2));
  const nameOfA = async () => (await bookings())[0].name;

  const corrected = lines(payload("A", "Canary second"));
  expect(await runImport(corrected, asOf)).toEqual({ lines: 3, queued: 1, known: 2, rejected: 0 });
  await waitFor(async () => expect(await nameOfA()).toBe("Canary second"));

  const later = new Date(asOf.getTime() + 1);
  expect(await runImport([payload("A", "Canary third")], later)).toMatchObject({ queued: 1 });
  await waitFor(async () => expect(await nameOfA()).toBe("Canary third"));
});

test("an import that was killed goes on when it is run again, and no line counts twice", async () => {
  const lines = Array.from({ length: 20_000 }, (_, index) => payload(`T-${index}`, `Canary ${index}`));
  const asOf = new Date();
  const child = startImport(lines, asOf);
  await waitFor(async () => expect((await read("select from bookings limit 1000")).length).toBeGreaterThan(0), {
    timeoutMs: 30_000,
  });
  child.kill("SIGKILL");
  await once(child, "close");
  const { queued, known } = await runImport(lines, asOf);
  expect({ total: queued + known, isResumed: known > 0 && queued > 0 }).toEqual({ total: 20_000, isResumed: true });
  await waitFor(
    async () =>
      expect(
        await read(`select (select count(*)::int from bookings) as bookings,
          (select count(*)::int from booking_events where outcome = 'created') as events,
          (select count(*)::int from booking_events) as "allEvents",
          (select count(*)::int from booking_changes) as changes`),
      ).toEqual([{ bookings: 20_000, events: 20_000, allEvents: 20_000, changes: 20_000 }]),
    { timeoutMs: 60_000 },
  );
});
