import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { uniquePrefix, waitFor } from "@booking-events/harness";
import { fetchAsPartner } from "@booking-events/harness/fetch-as-partner";
import { expect, test } from "vitest";
import { postAccepted, postEvent } from "./post-event.ts";
import { type RunningApp, runApp, useOwnServices } from "./surroundings.ts";

const secret = "a-secret-of-the-test-with-enough-characters";
const { version } = JSON.parse(readFileSync("package.json", "utf8"));
const own = useOwnServices(secret);
const { running } = own;

test("a partner posts, and the booking is in PostgreSQL", async () => {
  const [ingest] = await runBoth();
  const payload = JSON.parse(await readFile("packages/schema/examples/full-booking.json", "utf8")).payload;
  const created = await postEvent(ingest, { secret, fields: payload });
  expect(created.status).toBe(200);
  expect(await created.json()).toEqual({
    success: true,
    eventId: expect.stringMatching(/^[0-9a-f-]{14}7[0-9a-f-]{21}$/),
  });

  const reference = payload.consumerTripPartnerExternalReference;
  const booking = await untilBooking(reference, "active");
  expect(booking.payload).toEqual(payload);
  const { rows } = await own.pool.query(
    "select consumer_trip_arrival_date::text as arrival from booking_details where reference = $1",
    [reference],
  );
  expect(rows).toEqual([{ arrival: payload.consumerTripArrivalDate.slice(0, 10) }]);

  await postEvent(ingest, { secret, kind: "delete", reference });
  await untilBooking(reference, "deleted");
  const changes = await own.pool.query("select change from booking_changes where reference = $1 order by id", [
    reference,
  ]);
  expect(changes.rows.map(({ change }) => change)).toEqual(["created", "deleted"]);
});

test("a sender's mistakes lose no data, and can be seen in the log of events, the metrics and the output", async () => {
  const [ingest, worker] = await runBoth();
  const trip = { consumerTripPartnerExternalReference: "KEYS-1", consumerPartnerExternalReference: "KEYS-C" };
  const send = (kind: string, fields: object) =>
    postEvent(ingest, { secret, kind, fields, headers: { "Idempotency-Key": "KEY-1" } });
  await send("create", { ...trip, consumerGivenName: "Ada" });
  await send("update", { ...trip, consumerGivenName: "Zoe" });
  // The worker may apply events of different bookings in any order.
  await waitFor(async () => expect((await readBooking("KEYS-1"))?.payload).toMatchObject({ consumerGivenName: "Zoe" }));
  await send("delete", { consumerPartnerExternalReference: "KEYS-C" });
  await waitFor(async () => {
    const { rows } = await own.pool.query(
      "select outcome, warnings from booking_events where reference like 'KEYS-%' order by sequence",
    );
    expect(rows).toEqual([
      { outcome: "created", warnings: [] },
      { outcome: "updated", warnings: ["key-reused"] },
      { outcome: "deleted", warnings: ["booking-unknown", "reference-kind"] },
    ]);
  });
  await waitFor(async () => {
    const metrics = await (await fetch(`${worker.adminUrl}/metrics`)).text();
    expect(metrics).toMatch(/^booking_events_warnings_total\{.*code="key-reused".*\} 1$/m);
    expect(metrics).toMatch(/^booking_events_warnings_total\{.*code="reference-kind".*\} 1$/m);
    expect(worker.output()).toMatch(/"kind":"update","code":"key-reused","msg":"event recorded with a warning"/);
    expect(worker.output()).not.toContain("KEY");
  });
});

test("numbers keep their digits on the whole way, and are compared by their values", async () => {
  const [ingest] = await runBoth();
  const send = (kind: string, numbers: string) =>
    fetchAsPartner(`${ingest.url}/booking-event/${kind}/${secret}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: `{"consumerTripPartnerExternalReference":"NUMBERS-1","numbers":${numbers}}`,
    });
  await send("create", "[9007199254740993,1e400,100]");
  await send("update", "[9007199254740993.0,10e399,1.0e2]");
  await send("update", "[9007199254740993,1e401,100]");
  await send("update", "[9007199254740992,1e401,100]");

  await waitFor(async () => {
    const { rows } = await own.pool.query(
      `select outcome, payload ->> 'numbers' as numbers from booking_events where reference = 'NUMBERS-1' order by sequence`,
    );
    expect(rows.map(({ outcome }) => outcome)).toEqual(["created", "unchanged", "updated", "updated"]);
    expect(rows.at(-1).numbers).toBe(`[9007199254740992, 1${"0".repeat(401)}, 100]`);
  });
  const { rows } = await own.pool.query("select payload from booking_events where reference = 'NUMBERS-1' order by id");
  expect(JSON.stringify(rows[0].payload)).toContain(`"numbers":[9007199254740993,1${"0".repeat(400)},100]`);
});

test("a form is accepted, too", async () => {
  const [ingest] = await runBoth();
  const form = new URLSearchParams({ consumerTripPartnerExternalReference: "FORM-1", consumerGivenName: "Zoë & co" });
  const response = await fetchAsPartner(`${ingest.url}/booking-event/create/${secret}`, { method: "POST", body: form });
  expect(response.status).toBe(200);
  expect((await untilBooking("FORM-1", "active")).payload).toEqual(Object.fromEntries(form));
});

test("an accepted event survives the restart of every process in between", async () => {
  // Another worker would apply the event before that.
  const environment = { QUEUE_PREFIX: uniquePrefix() };
  const start = (name: "ingest" | "worker") => own.start(name, { environment });
  const ingest = await start("ingest");
  await postAccepted(ingest, { secret, reference: "RESTART-1" });
  expect(await ingest.stop("SIGTERM")).toBe(0);

  own.redis.kill("SIGKILL");
  await own.redis.ended();
  await own.redis.restart();
  await own.postgres.restart();
  const worker = await start("worker");
  await untilBooking("RESTART-1", "active");
  expect(await worker.stop("SIGTERM")).toBe(0);

  const again = await start("ingest");
  await postAccepted(again, { secret, kind: "update", reference: "RESTART-1", fields: { note: "later" } });
  await start("worker");
  await waitFor(async () => expect((await readBooking("RESTART-1"))?.payload).toMatchObject({ note: "later" }));
  const { rows } = await own.pool.query(
    "select outcome from booking_events where reference = 'RESTART-1' order by sequence",
  );
  expect(rows.map(({ outcome }) => outcome)).toEqual(["created", "updated"]);
});

test("each process has metrics, and says which version it is, and whether it is alive and ready", async () => {
  for (const app of await runBoth()) {
    expect((await fetch(`${app.adminUrl}/livez`)).status).toBe(200);
    expect(await app.readiness()).toEqual({ status: 200, body: { ready: true } });
    await waitFor(() => expect(app.logLines()).toContainEqual(expect.objectContaining({ version })));
    expect(await (await fetch(`${app.adminUrl}/metrics`)).text()).toContain("process_cpu_seconds_total");
    expect(await app.stop("SIGINT")).toBe(0);
  }
});

// The tests of ingest say the same of ingest.
test("the worker names every variable that is missing or wrong, and exits with 1", async () => {
  const worker = await runApp("worker", { LOG_LEVEL: "loud", HOST: "127.0.0.1", ADMIN_PORT: "many" });
  expect(await worker.stop("SIGCONT")).toBe(1);
  for (const variable of ["LOG_LEVEL", "ADMIN_PORT", "REDIS_URL"]) expect(worker.output()).toContain(variable);
  expect(worker.output()).not.toContain("    at ");
});

function runBoth(): Promise<[RunningApp, RunningApp]> {
  return Promise.all([running("ingest"), running("worker")]);
}

async function readBooking(reference: string): Promise<{ state: string; payload: unknown } | undefined> {
  const { rows } = await own.pool.query("select state, payload from bookings where reference = $1", [reference]);
  return rows[0];
}

async function untilBooking(reference: string, state: string): Promise<{ state: string; payload: unknown }> {
  let found: Awaited<ReturnType<typeof readBooking>>;
  await waitFor(async () => {
    found = await readBooking(reference);
    expect(found?.state).toBe(state);
  });
  return found as NonNullable<typeof found>;
}
