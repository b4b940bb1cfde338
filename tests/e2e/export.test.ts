import { Readable, Writable } from "node:stream";
import { waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { runProgram } from "@booking-events/ops/program";
import { runOps, spawnCutOps } from "@booking-events/ops/testing/run-ops";
import { type EventEnvelope, parseJson } from "@booking-events/schema";
import { applyEvents } from "@booking-events/worker/apply/apply-events";
import { beforeEach, expect, test } from "vitest";

const { pool, url } = useTestDatabase();
const environment = { DATABASE_URL: url };

beforeEach(() => pool.query("truncate bookings, booking_events, booking_changes, operator_actions"));

const startMs = Date.UTC(2026, 10, 20);
const guest = "canary.guest@example.com";

function event(number: number, more: Partial<EventEnvelope> = {}): EventEnvelope {
  const receivedMs = startMs + number * 1_000;
  const time = receivedMs.toString(16).padStart(12, "0");
  const reference = `TRIP-${number}`;
  return {
    ...{ version: 1, eventId: `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`, kind: "create" },
    ...{ partner: "acme", sequence: receivedMs * 1_000, receivedAt: new Date(receivedMs).toISOString() },
    ...{ idempotencyKey: null, secretId: "s1" },
    payload: parseJson(
      `{"consumerTripPartnerExternalReference": "${reference}", "consumerEmail": "${guest}", "price": 12345678901234567890.10,
        "consumerTripArrivalDate": "2027-01-02"}`,
    ) as EventEnvelope["payload"],
    ...more,
  } as EventEnvelope;
}

const apply = (...events: EventEnvelope[]) => applyEvents(pool, events, { duplicateWindowMs: 72 * 3_600_000 });
const run = (...args: string[]) => runOps(["export", ...args], { environment });

async function readLines(...args: string[]): Promise<string[]> {
  const { exitCode, stdout } = await run(...args);
  expect(exitCode).toBe(0);
  return stdout.split(/\r?\n/).filter((line) => line !== "");
}

async function readActions() {
  const { rows } = await pool.query(
    "select operator, command, arguments, outcome, problem, did from operator_actions order by began_at",
  );
  return rows;
}

test("bookings and events are written without guests' data, and it is recorded how many", async () => {
  await apply(event(1), event(2, { partner: "globe" }));
  const { stdout, stderr } = await run("bookings", "--csv");
  expect(stderr).toBe("Exported 2 bookings.\n");
  const [header = "", first = "", second = ""] = stdout.split("\r\n");
  const cells = header.split(",");
  const cellOf = (line: string, column: string) => line.split(",")[cells.indexOf(column)];
  expect([cellOf(first, "partner"), cellOf(first, "reference"), cellOf(first, "state")]).toEqual([
    ...["acme", "TRIP-1", "active"],
  ]);
  expect([cellOf(second, "partner"), cellOf(second, "arrivalDate")]).toEqual(["globe", "2027-01-02"]);
  const [, later = ""] = await readLines("events", "--ndjson");
  expect(JSON.parse(later)).toMatchObject({ partner: "globe", reference: "TRIP-2", outcome: "created" });
  expect(stdout + later).not.toContain(guest);
  expect(await readActions()).toEqual([
    {
      ...{ operator: "tester", command: "export bookings", outcome: "done", problem: null, did: { rows: 2 } },
      arguments: { format: "csv", withPayload: false },
    },
    {
      ...{ operator: "tester", command: "export events", outcome: "done", problem: null, did: { rows: 2 } },
      arguments: { format: "ndjson", withPayload: false },
    },
  ]);
});

test("with --payload, what was sent is written digit by digit, and the record holds none of it", async () => {
  await apply(event(1));
  for (const what of ["bookings", "events"])
    for (const format of ["--csv", "--ndjson"])
      expect((await run(what, format, "--payload")).stdout).toMatch(/12345678901234567890\.10.*canary\.guest/);
  const actions = await readActions();
  expect(actions.map(({ arguments: given }) => given.withPayload)).toEqual([true, true, true, true]);
  expect(JSON.stringify(actions)).not.toMatch(/canary|TRIP/);
});

test("a partner and a period select", async () => {
  await apply(event(1), event(2, { partner: "globe" }), event(3), event(4));
  const period = [
    "--since",
    new Date(startMs + 2_000).toISOString(),
    "--until",
    new Date(startMs + 4_000).toISOString(),
  ];
  for (const what of ["bookings", "events"]) {
    const referencesOf = async (...args: string[]) =>
      (await readLines(what, "--ndjson", ...args)).map((line) => JSON.parse(line).reference);
    expect(await referencesOf("--partner", "acme")).toEqual(["TRIP-1", "TRIP-3", "TRIP-4"]);
    expect((await referencesOf(...period)).sort()).toEqual(["TRIP-2", "TRIP-3"]);
    expect(await referencesOf("--partner", "acme", ...period)).toEqual(["TRIP-3"]);
  }
});

test("the reader sets the pace, and all rows are of one moment", async () => {
  await apply(...Array.from({ length: 500 }, (_, index) => event(index)));
  const written: string[] = [];
  let resume = () => {};
  const stdout = new Writable({
    highWaterMark: 1,
    write(chunk, _encoding, done) {
      written.push(String(chunk));
      resume = done;
    },
  });
  const stderr = new Writable({ write: (_chunk, _encoding, done) => done() });
  const exporting = runProgram(["export", "events", "--ndjson"], {
    ...{ stdin: Readable.from([""]), stdout, stderr, now: () => new Date() },
    environment: { ...environment, OPERATOR: "tester" },
    ...{ endWithReader: () => {}, atSignal: () => {} },
  });
  const countLines = () => written.join("").split("\n").length - 1;
  await waitFor(() => expect(countLines()).toBe(200));
  await apply(event(1_000));
  // What has been read and is not taken yet.
  expect(countLines()).toBe(200);
  for (let page = 1; page < 3; page += 1) {
    resume();
    await waitFor(() => expect(countLines()).toBe(Math.min(200 * (page + 1), 500)));
  }
  resume();
  expect(await exporting).toBe(0);
  expect(countLines()).toBe(500);
});

test("if the reader goes, the command ends with 1, and says and records how many rows there were", async () => {
  await apply(...Array.from({ length: 3_000 }, (_, index) => event(index)));
  const { exitCode, stderr } = await spawnCutOps(["export", "events", "--ndjson"], environment);
  expect(exitCode).toBe(1);
  expect(stderr).toMatch(/^The output was closed\. The export is not complete: it ended after \d+ rows\.$/m);
  const [action] = await readActions();
  expect(action).toMatchObject({ outcome: "failed", problem: expect.stringContaining("The output was closed.") });
  expect(action?.did.rows).toBeLessThan(3_000);
});

test.each([
  [["bookings"], 2, /Say in which format: --csv or --ndjson/],
  [["events", "--csv", "--ndjson"], 2, /cannot be used with/],
  [["events", "--csv", "--since", "yesterday"], 2, /Give a time such as/],
])("wrong usage is explained: %j", async (args, exitCode, message) => {
  expect(await run(...args)).toMatchObject({ exitCode, stdout: "", stderr: expect.stringMatching(message) });
});

test("an export of nothing has the header of its columns", async () => {
  expect((await run("events", "--csv")).stdout).toMatch(/^id,partner,[a-zA-Z,]+\r\n$/);
  expect((await run("events", "--ndjson")).stdout).toBe("");
});
