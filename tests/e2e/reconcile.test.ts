import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { waitFor } from "@booking-events/harness";
import { fetchAsPartner } from "@booking-events/harness/fetch-as-partner";
import { connect, exchange, requestBytes } from "@booking-events/harness/http-client";
import { partner } from "@booking-events/harness/partners";
import { noLimit, writePartnersFile } from "@booking-events/harness/partners-file";
import { runOps } from "@booking-events/ops/testing/run-ops";
import { beforeAll, describe, expect, test } from "vitest";
import { postAccepted } from "./post-event.ts";
import { type RunningApp, shareSurroundings } from "./surroundings.ts";

const secret = "a-secret-of-the-reconcile-tests-01234567";
const otherSecret = "a-secret-of-another-partner-0123456789ab";
const slowSecrets = [1, 2, 3].map((number) => `a-secret-of-a-partner-that-is-slow-012345${number}`);
const shared = shareSurroundings(secret);
const { running } = shared;

beforeAll(() => {
  writePartnersFile(shared.environment["PARTNERS_FILE"] ?? "", [
    partner("acme", { [secret]: null }, { rateLimit: noLimit }),
    partner("zenith", { [otherSecret]: null }, { rateLimit: noLimit }),
    ...slowSecrets.map((slowSecret, index) => partner(`slow-${index}`, { [slowSecret]: null })),
  ]);
});

/** As the partner guide says, without our code. */
function digestOf(payload: object): string {
  return createHash("sha256").update(toCanonicalJson(payload)).digest("hex");
}

function toCanonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toCanonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${toCanonicalJson(member)}`).join(",")}}`;
}

function post(ingest: RunningApp, kind: string, fields: object, bySecret = secret): Promise<string> {
  return postAccepted(ingest, { secret: bySecret, kind, fields });
}

async function untilApplied(count: number): Promise<void> {
  await waitFor(async () => {
    const { rows } = await shared.pool.query("select count(*)::int as count from booking_events");
    expect(rows).toEqual([{ count }]);
  });
}

const trip = (reference: string, more: object = {}) => ({ consumerTripPartnerExternalReference: reference, ...more });

type Line = Record<string, unknown>;

async function reconcile(lookup: RunningApp, list: Line[], bySecret = secret): Promise<Line[]> {
  const response = await fetch(`${lookup.url}/booking-event/reconcile/${bySecret}?allowEmpty=true`, {
    method: "POST",
    headers: { "Content-Type": "application/x-ndjson" },
    body: list.map((line) => JSON.stringify(line)).join("\n"),
  });
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("application/x-ndjson");
  const lines = (await response.text()).split("\n");
  expect(lines.at(-1)).toBe("");
  return lines.slice(0, -1).map((line) => JSON.parse(line));
}

const noDifference = { missing: 0, different: 0, "deleted-here": 0, erased: 0, unknown: 0 };
const updatedAt = expect.stringMatching(/^2\d{3}-.*Z$/);

test("a list is answered with what differs, and with a summary", async () => {
  const [ingest, , lookup] = await Promise.all([running("ingest"), running("worker"), running("lookup")]);
  const { payload } = JSON.parse(await readFile("packages/schema/examples/full-booking.json", "utf8"));
  const reference = payload.consumerTripPartnerExternalReference;
  const consumer = { consumerPartnerExternalReference: "TRIP-SAME", note: 1.5 };
  for (const booking of [payload, trip("TRIP-SAME"), trip("CHANGED"), trip("GONE"), trip("EXTRA"), consumer])
    await post(ingest, "create", booking);
  await post(ingest, "delete", trip("GONE"));
  await post(ingest, "create", trip("FOREIGN"), otherSecret);
  await untilApplied(8);
  const form = new URLSearchParams({ consumerTripPartnerExternalReference: "FORM", consumerGivenName: "Zoë" });
  await fetchAsPartner(`${ingest.url}/booking-event/create/${secret}`, { method: "POST", body: form });
  await untilApplied(9);

  const list = [
    { reference, digest: digestOf(payload) },
    { reference: "TRIP-SAME" },
    { reference: "TRIP-SAME", referenceKind: "consumer", digest: digestOf(consumer) },
    { reference: "FORM", digest: digestOf(Object.fromEntries(form)) },
    { reference: "CHANGED", digest: digestOf(trip("CHANGED", { note: "theirs" })) },
    { reference: "GONE" },
    { reference: "NEVER-SENT" },
    { reference: "FOREIGN" },
  ];
  expect(await reconcile(lookup, list)).toEqual([
    { reference: "CHANGED", result: "different", updatedAt },
    { reference: "GONE", result: "deleted-here", updatedAt },
    { reference: "NEVER-SENT", result: "missing" },
    { reference: "FOREIGN", result: "missing" },
    { reference: "EXTRA", result: "unknown", updatedAt },
    { summary: { references: 8, same: 4, missing: 2, different: 1, "deleted-here": 1, erased: 0, unknown: 1 } },
  ]);
  expect(await reconcile(lookup, [{ reference: "FOREIGN" }], otherSecret)).toEqual([
    { summary: { ...noDifference, references: 1, same: 1 } },
  ]);
});

test("an empty list is answered with every active booking if that is meant, and otherwise refused", async () => {
  const [ingest, , lookup] = await Promise.all([running("ingest"), running("worker"), running("lookup")]);
  await post(ingest, "create", trip("TRIP-1"));
  await post(ingest, "create", { consumerPartnerExternalReference: "CONSUMER-1" });
  await untilApplied(2);
  const [first, second, summary] = await reconcile(lookup, []);
  expect([first, second]).toEqual(
    expect.arrayContaining([
      { reference: "TRIP-1", result: "unknown", updatedAt },
      { reference: "CONSUMER-1", referenceKind: "consumer", result: "unknown", updatedAt },
    ]),
  );
  expect(summary).toEqual({ summary: { ...noDifference, references: 0, same: 0, unknown: 2 } });
  for (const query of ["", "?allowEmpty=false", "?allowEmpty", "?allowempty=true"]) {
    const path = `/booking-event/reconcile/${secret}${query}`;
    const headers = { "Content-Type": "application/x-ndjson" };
    for (const body of ["", "\n \r\n"]) {
      const answer = await exchange(lookup.port, { path, headers, body });
      expect([answer.status, JSON.parse(answer.body)]).toMatchObject([400, { code: "empty-list" }]);
    }
  }
});

test("a booking that is listed twice counts once, and two digests for one are a contradiction", async () => {
  const [ingest, , lookup] = await Promise.all([running("ingest"), running("worker"), running("lookup")]);
  await post(ingest, "create", trip("TRIP-1"));
  await untilApplied(1);
  const digest = digestOf(trip("TRIP-1"));
  const other = digestOf(trip("TRIP-1", { note: "other" }));
  const listed = { reference: "TRIP-1", digest, price: { yours: [1] } };
  expect(await reconcile(lookup, [listed, listed, { reference: " TRIP-1\u200b", digest }])).toEqual([
    { summary: { ...noDifference, references: 1, same: 1 } },
  ]);
  for (const second of [{ reference: "TRIP-1", digest: other }, { reference: "TRIP-1" }]) {
    const answer = await exchange(lookup.port, {
      path: `/booking-event/reconcile/${secret}`,
      headers: { "Content-Type": "application/x-ndjson" },
      body: [listed, second, { reference: "" }].map((line) => JSON.stringify(line)).join("\n"),
    });
    expect([answer.status, JSON.parse(answer.body)]).toMatchObject([
      400,
      {
        code: "invalid-list-line",
        violationList: [
          { code: "contradiction", propertyPath: ["2", "digest"] },
          { code: "malformed", propertyPath: ["3", "reference"] },
        ],
      },
    ]);
  }
});

test("a booking is described without its content, with the digest that its partner computes", async () => {
  const [ingest, , lookup] = await Promise.all([running("ingest"), running("worker"), running("lookup")]);
  const { payload } = JSON.parse(await readFile("packages/schema/examples/full-booking.json", "utf8"));
  const reference = payload.consumerTripPartnerExternalReference;
  const ask = async (query: string, bySecret = secret) => {
    const response = await fetch(`${lookup.url}/booking-event/booking/${bySecret}?${query}`);
    return { status: response.status, body: await response.json() };
  };
  const byReference = `reference=${encodeURIComponent(reference)}`;
  const created = await post(ingest, "create", payload);
  await untilApplied(1);
  expect(await ask(byReference)).toEqual({
    status: 200,
    body: { state: "active", revision: 1, decidedBy: created, updatedAt, digest: digestOf(payload) },
  });
  const deleted = await post(ingest, "delete", payload);
  await untilApplied(2);
  expect(await ask(`${byReference}&referenceKind=trip`)).toEqual({
    status: 200,
    body: { state: "deleted", revision: 2, decidedBy: deleted, updatedAt },
  });
  const unknown = { status: 404, body: { message: "There is no such booking.", code: "no-such-booking" } };
  for (const query of [`${byReference}&referenceKind=consumer`, "reference=NEVER"])
    expect(await ask(query)).toEqual(unknown);
  expect(await ask(byReference, otherSecret)).toEqual(unknown);
  expect(await ask(byReference, "a-stranger")).toEqual({
    status: 403,
    body: { message: "Invalid secret", code: "invalid-secret" },
  });
  for (const query of ["", "reference=", "reference=A&reference=B", "reference=A&referenceKind=agent", "reference=%00"])
    expect(await ask(query)).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining("one reference") },
    });
});

test("a partner sees on request what we read of its own booking's fields, and nobody else does", async () => {
  const [ingest, , lookup] = await Promise.all([running("ingest"), running("worker"), running("lookup")]);
  const sent = trip("TRIP-1", {
    consumerPhone: "020 7183 8750",
    consumerNationality: "United Kingdom",
    consumerEmail: "Ada <ada@EXAMPLE.com>",
    consumerTripIsLocal: "no",
    consumerTripArrivalDate: "2027-06-14T09:27:17.335+02:00",
    consumerTripReturnDate: "20270620",
    consumerTripDestinationCountryName: " Spain ",
    agentTimezone: "nowhere",
  });
  await post(ingest, "create", sent);
  await untilApplied(1);
  const ask = async (query: string, bySecret = secret) => {
    const response = await fetch(`${lookup.url}/booking-event/booking/${bySecret}?reference=TRIP-1${query}`);
    return { status: response.status, body: Object(await response.json()) };
  };
  const fields =
    "consumerPhone,consumerEmail,consumerTripIsLocal,consumerTripArrivalDate,consumerTripReturnDate," +
    "consumerTripDestinationCountryName,agentTimezone";
  const { body } = await ask(`&fields=${fields}`);
  expect(body).toEqual({
    ...(await ask("")).body,
    readings: {
      ...{ consumerPhone: "+442071838750", consumerPhoneIsAssumed: true, consumerEmail: "ada@example.com" },
      ...{ consumerTripIsLocal: false, consumerTripArrivalDate: "2027-06-14" },
      ...{ consumerTripArrivalAt: "2027-06-14T07:27:17.335Z", consumerTripReturnDate: "2027-06-20" },
      ...{ consumerTripReturnAt: null, consumerTripDestinationCountryName: "Spain" },
      ...{ consumerTripDestinationCountryCode: "ES", agentTimezone: null },
    },
  });
  expect((await ask("")).body).not.toHaveProperty("readings");
  expect(Object.keys((await ask("&fields=all")).body.readings)).toHaveLength(23);
  expect(await ask("&fields=consumerGivenName")).toMatchObject({ status: 400, body: { code: "invalid-fields" } });
  expect(await ask("&fields=all", otherSecret)).toMatchObject({ status: 404 });

  const silent = await shared.start("lookup", { environment: { LOOKUP_VALUES: "false" } });
  const refused = await fetch(`${silent.url}/booking-event/booking/${secret}?reference=TRIP-1&fields=all`);
  expect([refused.status, await refused.json()]).toMatchObject([400, { code: "readings-off" }]);
  expect((await fetch(`${silent.url}/booking-event/booking/${secret}?reference=TRIP-1`)).status).toBe(200);
  await silent.stop("SIGTERM");

  await post(ingest, "delete", trip("TRIP-1"));
  await untilApplied(2);
  expect((await ask("&fields=all")).body).not.toHaveProperty("readings");
});

test("an erased booking is called so, because sending it again would change nothing", async () => {
  const [ingest, , lookup] = await Promise.all([running("ingest"), running("worker"), running("lookup")]);
  await post(ingest, "create", trip("TRIP-1"));
  await untilApplied(1);
  const erase = ["guests", "erase", "--partner", "acme", "--reference", "TRIP-1", "--reason", "request", "--yes"];
  expect(await runOps(erase, { environment: shared.environment })).toMatchObject({ exitCode: 0 });
  expect(await reconcile(lookup, [{ reference: "TRIP-1" }])).toEqual([
    { reference: "TRIP-1", result: "erased" },
    { summary: { ...noDifference, references: 1, same: 0, erased: 1 } },
  ]);
  const response = await fetch(`${lookup.url}/booking-event/booking/${secret}?reference=TRIP-1&fields=all`);
  expect(await response.json()).toEqual({ state: "erased" });
});

describe("a list that cannot be compared", () => {
  const path = `/booking-event/reconcile/${secret}`;
  const headers = { "Content-Type": "application/x-ndjson" };

  test.each<[string, number, object, RegExp]>([
    ["an invalid line", 400, { headers, body: '{"reference":"A"}\nhello\n' }, /^The list has invalid lines/],
    ["another type", 415, { body: "{}" }, /application\/x-ndjson/],
    ["no type", 415, {}, /application\/x-ndjson/],
    ["a compressed list", 415, { headers: { ...headers, "Content-Encoding": "gzip" }, body: "x" }, /uncompressed/],
    [
      "a stranger's",
      403,
      { headers, path: "/booking-event/reconcile/x", body: "x".repeat(100_000) },
      /^Invalid secret$/,
    ],
  ])("%s", async (_what, status, request, message) => {
    const lookup = await running("lookup");
    const answer = await exchange(lookup.port, { path, ...request });
    expect([answer.status, JSON.parse(answer.body)]).toMatchObject([
      status,
      { message: expect.stringMatching(message) },
    ]);
  });

  test("gets 405 for another method", async () => {
    const lookup = await running("lookup");
    expect(await exchange(lookup.port, { method: "GET", path })).toMatchObject({
      status: 405,
      headers: { Allow: "POST" },
    });
  });

  test("waits for nobody: a partner's second list is refused while its first is under way, and receipts are not", async () => {
    const lookup = await running("lookup");
    const slow = await connect(lookup.port);
    const request = requestBytes({ path, headers, body: '{"reference":"A"}\n'.repeat(2) });
    slow.send(request.subarray(0, -5));
    await waitFor(async () => expect(await lookup.metrics()).toMatch(/^lookup_requests_in_flight\S* 1$/m));
    const second = await exchange(lookup.port, { path, headers, body: '{"reference":"A"}\n' });
    expect([second.status, second.headers["Retry-After"]]).toEqual([429, "10"]);
    const receipt = `/booking-event/receipt/${secret}/01a1fb0c-d72c-7345-a7ee-38bfa851309c`;
    expect(await exchange(lookup.port, { method: "GET", path: receipt })).toMatchObject({ status: 404 });
    slow.send(request.subarray(-5));
    expect(await slow.answer({ toHead: true })).toMatchObject({ status: 200 });
    await waitFor(async () => {
      const third = await exchange(lookup.port, { path, headers, body: '{"reference":1}\n' });
      expect(third.status).toBe(400);
    });
  });

  test("keeps nobody out while it arrives slowly, or while its answer is read slowly", async () => {
    const lookup = await running("lookup");
    const slow = await Promise.all(slowSecrets.map(() => connect(lookup.port)));
    const long = Array.from({ length: 100_000 }, (_, index) => `{"reference":"NEVER-${index}"}\n`).join("");
    for (const [index, slowSecret] of slowSecrets.entries()) {
      const path = `/booking-event/reconcile/${slowSecret}`;
      const isRead = index === 0;
      const request = requestBytes({ path, headers, body: isRead ? long : '{"reference":"A"}\n' });
      slow[index]?.send(isRead ? request : request.subarray(0, -1));
    }
    await slow[0]?.answer({ toHead: true });
    slow[0]?.socket.pause();
    await waitFor(async () => expect(await lookup.metrics()).toMatch(/^lookup_requests_in_flight\S* 3$/m));
    expect(await reconcile(lookup, [])).toHaveLength(1);
    for (const { socket } of slow) socket.destroy();
    await waitFor(async () => expect(await lookup.metrics()).toMatch(/^lookup_requests_in_flight\S* 0$/m));
  });

  test("a client that breaks off leaves its place to others", async () => {
    const lookup = await running("lookup");
    for (let round = 0; round < 5; round += 1) {
      const broken = await connect(lookup.port);
      broken.send(requestBytes({ path, headers, body: '{"reference":"A"}\n' }).subarray(0, -5));
      await waitFor(async () => expect(await lookup.metrics()).toMatch(/^lookup_requests_in_flight\S* 1$/m));
      broken.socket.destroy();
      await waitFor(async () => expect(await lookup.metrics()).toMatch(/^lookup_requests_in_flight\S* 0$/m));
    }
    expect(await reconcile(lookup, [])).toHaveLength(1);
  });
});

test("a client that reads the answer slowly gets all of it, and others are answered meanwhile", async () => {
  const lookup = await running("lookup");
  const references = 100_000;
  const lines = Array.from({ length: references }, (_, index) => `{"reference":"NEVER-${index}"}\n`).join("");
  const slow = await connect(lookup.port);
  slow.send(
    requestBytes({
      path: `/booking-event/reconcile/${secret}`,
      body: lines,
      headers: { "Content-Type": "application/x-ndjson", Connection: "close" },
    }),
  );
  await slow.answer({ toHead: true });
  slow.socket.pause();
  const receipt = `/booking-event/receipt/${otherSecret}/01a1fb0c-d72c-7345-a7ee-38bfa851309c`;
  expect(await exchange(lookup.port, { method: "GET", path: receipt })).toMatchObject({ status: 404 });
  let received = "";
  slow.socket.on("data", (chunk: Buffer) => {
    received = `${received.slice(-2_000)}${chunk.toString("latin1")}`;
  });
  slow.socket.resume();
  await slow.closed;
  expect(received).toContain(`"missing":${references}`);
});

test("neither a secret nor a reference is in the log or the metrics", async () => {
  const lookup = await shared.start("lookup");
  await reconcile(lookup, [{ reference: "canary-1" }]);
  await fetch(`${lookup.url}/booking-event/booking/${secret}?reference=canary-2&fields=consumerPhone,canary-4`);
  await fetch(`${lookup.url}/booking-event/receipt/${secret}/canary-3`);
  expect(await lookup.metrics()).not.toMatch(/canary|a-secret/);
  // The output is checked when the process has ended.
  expect(await lookup.stop("SIGTERM")).toBe(0);
  expect(lookup.logLines().filter(({ msg }) => msg === "request")).toHaveLength(3);
});
