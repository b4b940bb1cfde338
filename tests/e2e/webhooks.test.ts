import { createHash, randomBytes } from "node:crypto";
import { waitFor } from "@booking-events/harness";
import { runOps } from "@booking-events/ops/testing/run-ops";
import { findSubscription, insertSubscription, resumeSubscription, rotateKeys } from "@booking-events/store";
import { createSigningKey } from "@booking-events/subscribers";
import { Webhook } from "standardwebhooks";
import { afterEach, beforeAll, expect, test } from "vitest";
import { postAccepted } from "./post-event.ts";
import { type Received, type SubscriberServer, startSubscriber } from "./start-subscriber.ts";
import { type RunningApp, useOwnServices } from "./surroundings.ts";

const secret = "a-secret-of-the-webhooks-tests-0123456789";
/** What a guest has sent. Processes that print it fail the test: see `runApp`. */
const email = "ada.canary@example.com";
const own = useOwnServices(secret);
const subscribers: SubscriberServer[] = [];

beforeAll(() => {
  own.environment["WEBHOOKS_ALLOW_PRIVATE"] = "true";
});

afterEach(async () => {
  await own.pool.query("delete from subscriptions");
  for (const subscriber of subscribers.splice(0)) await subscriber.close();
});

/** Subscribes a server of this test to all that comes from now on. */
async function subscribe(more: { mode?: "latest" | "every"; payload?: "thin" | "full"; url?: string } = {}) {
  const subscriber = await startSubscriber();
  subscribers.push(subscriber);
  const name = `test-${randomBytes(6).toString("hex")}`;
  const signingKey = createSigningKey("hmac");
  const added = await insertSubscription(own.pool, {
    ...{ name, url: subscriber.url, mode: "every", payload: "thin", signature: "hmac", signingKey },
    ...{ partners: null, changes: null, countries: null, arrivalFromDays: null, arrivalToDays: null },
    ...{ tokenSha256: null, createdBy: "test" },
    ...more,
  });
  expect(added).toBe("added");
  return { name, subscriber, signingKey };
}

async function startAll(): Promise<{ ingest: RunningApp; webhooks: RunningApp }> {
  const [ingest, webhooks] = await Promise.all([own.running("ingest"), own.running("webhooks"), own.running("worker")]);
  return { ingest, webhooks };
}

const post = (ingest: RunningApp, reference: string, kind = "create", fields = {}) =>
  postAccepted(ingest, { secret, kind, reference, fields });

const describeEvent = ({ event: { type, subject, data } }: Received) =>
  `${subject} ${type} ${"revision" in data ? data.revision : ""}`;

const eventsOf = (received: Received[], reference: string) =>
  received.filter(({ event }) => event.subject === reference).map(describeEvent);

function verify(signingKey: string, { body, headers }: Received): void {
  expect(new Webhook(signingKey).verify(body, headers)).toEqual(JSON.parse(body));
}

async function failureOf(name: string): Promise<string | undefined> {
  const { rows } = await own.pool.query(
    "select failure from feed_deliveries where reader = $1 and change_id is not null",
    [name],
  );
  return rows[0]?.failure;
}

test("what partners send arrives signed, and in the order of each booking", async () => {
  const { ingest, webhooks } = await startAll();
  const { name, subscriber, signingKey } = await subscribe({ payload: "full" });
  await post(ingest, "ORDER-1", "create", { consumerEmail: email, consumerPhone: "+44 20 7183 8750" });
  await post(ingest, "ORDER-2");
  await waitFor(() => expect(subscriber.taken).toHaveLength(2));
  for (const note of ["A", "B", "C"]) await post(ingest, "ORDER-1", "update", { note });
  await post(ingest, "ORDER-1", "delete");
  await waitFor(() => expect(eventsOf(subscriber.taken, "ORDER-1").at(-1)).toMatch(/booking\.deleted/));

  const ofFirst = eventsOf(subscriber.taken, "ORDER-1");
  expect(ofFirst).toEqual(ofFirst.toSorted((a, b) => Number(a.split(" ")[2]) - Number(b.split(" ")[2])));
  expect(eventsOf(subscriber.taken, "ORDER-2")).toEqual(["ORDER-2 booking.created 1"]);
  for (const received of subscriber.received) verify(signingKey, received);
  const first = subscriber.taken.find(({ event }) => event.subject === "ORDER-1");
  expect(first?.headers["webhook-id"]).toBe(`${name}-${first?.event.id}`);
  expect(first?.event).toMatchObject({
    ...{ specversion: "1.0", source: "acme", type: "booking.created", datacontenttype: "application/json" },
    data: {
      changedFields: expect.arrayContaining(["consumerEmail", "consumerPhone"]),
      booking: { reference: "ORDER-1", consumer_email: email, consumer_phone: "+442071838750" },
      sent: { consumerTripPartnerExternalReference: "ORDER-1", consumerEmail: email },
    },
  });
  expect(await webhooks.metrics()).toMatch(
    new RegExp(
      `^webhooks_attempts_total\\{.*subscription="${name}",answer="2xx".*\\} ${subscriber.taken.length}$`,
      "m",
    ),
  );
});

test("a booking whose posts fail waits alone, and arrives in its order once they succeed", async () => {
  const { ingest } = await startAll();
  const { name, subscriber } = await subscribe();
  let isBroken = true;
  subscriber.answer = ({ event }) => (isBroken && event.subject === "BROKEN-1" ? 500 : 200);
  await post(ingest, "BROKEN-1");
  await waitFor(async () => expect(await failureOf(name)).toBe("http-500"));
  await post(ingest, "BROKEN-1", "update", { note: "later" });
  for (const reference of ["WORKING-1", "WORKING-2", "WORKING-3"]) await post(ingest, reference);
  await waitFor(() => expect(subscriber.taken).toHaveLength(3));
  expect(eventsOf(subscriber.taken, "BROKEN-1")).toEqual([]);
  isBroken = false;
  await waitFor(() =>
    expect(eventsOf(subscriber.taken, "BROKEN-1")).toEqual([
      "BROKEN-1 booking.created 1",
      "BROKEN-1 booking.updated 2",
    ]),
  );
  const attempts = subscriber.received.filter(
    ({ event }) => event.type === "booking.created" && event.subject === "BROKEN-1",
  );
  expect(new Set(attempts.map(({ headers }) => headers["webhook-id"]))).toHaveProperty("size", 1);
});

test("an erasure arrives with nothing of the guest, instead of what waited", async () => {
  const guest = "zoe.canary@example.com";
  const { ingest } = await startAll();
  const { name, subscriber } = await subscribe({ payload: "full" });
  subscriber.answer = () => 500;
  await post(ingest, "TRIP-CANARY", "create", { consumerEmail: guest });
  await waitFor(async () => expect(await failureOf(name)).toBe("http-500"));
  const { rows } = await own.pool.query("select booking_id from bookings where reference = 'TRIP-CANARY'");
  const erasing = await runOps(["guests", "erase", "--email", guest, "--reason", "request 4711", "--yes"], {
    environment: own.environment,
  });
  expect(erasing.exitCode, erasing.stderr).toBe(0);
  subscriber.received.length = 0;
  subscriber.answer = () => 200;
  await waitFor(() => expect(subscriber.taken).toHaveLength(1));
  const [{ event, body, headers }] = subscriber.taken as [Received];
  const bookingId = rows[0].booking_id;
  expect(event).toMatchObject({ type: "booking.erased", source: "acme", subject: bookingId });
  expect(event.data).toEqual({ bookingId, revision: 2, change: "erased" });
  expect(body + JSON.stringify(headers)).not.toMatch(/canary/i);
});

test("a process that is killed in the middle loses nothing, and another takes over", async () => {
  const { ingest } = await startAll();
  const { subscriber } = await subscribe();
  const first = await own.running("webhooks");
  const { promise: never } = Promise.withResolvers<number>();
  // The answers of some posts never come.
  subscriber.answer = () => (subscriber.received.length % 3 === 0 ? never : 200);
  const references = Array.from({ length: 30 }, (_, number) => `KILL-${number}`);
  for (const reference of references) await post(ingest, reference);
  await waitFor(() => expect(subscriber.received.length).toBeGreaterThan(10));
  await first.stop("SIGKILL");
  subscriber.answer = () => 200;
  await own.start("webhooks");
  await waitFor(() => expect(new Set(subscriber.taken.map(({ event }) => event.subject))).toEqual(new Set(references)));
});

test("two processes share the work: one delivers, and the other takes over when it stops", async () => {
  const { ingest } = await startAll();
  const { name, subscriber } = await subscribe();
  const [first, second] = await Promise.all([own.running("webhooks"), own.start("webhooks")]);
  const isDelivering = async (app: RunningApp) =>
    new RegExp(`^webhooks_delivering\\{.*subscription="${name}".*\\} 1$`, "m").test(await app.metrics());
  await post(ingest, "SHARED-1");
  await waitFor(() => expect(subscriber.received).toHaveLength(1));
  const states = [await isDelivering(first), await isDelivering(second)];
  expect(states.toSorted()).toEqual([false, true]);
  const [active, standby] = states[0] ? [first, second] : [second, first];
  expect(await active.stop("SIGTERM")).toBe(0);
  await post(ingest, "SHARED-2");
  await waitFor(() =>
    expect(subscriber.taken.map(describeEvent)).toEqual(["SHARED-1 booking.created 1", "SHARED-2 booking.created 1"]),
  );
  expect(await isDelivering(standby)).toBe(true);
});

test("a post under way is finished before the process stops, and is not posted again", async () => {
  const { ingest } = await startAll();
  const { subscriber } = await subscribe();
  const { promise: answer, resolve: decide } = Promise.withResolvers<number>();
  subscriber.answer = () => answer;
  await post(ingest, "LAST-1");
  await waitFor(() => expect(subscriber.received).toHaveLength(1));
  const webhooks = await own.running("webhooks");
  const stopped = webhooks.stop("SIGTERM");
  await waitFor(async () => expect(webhooks.output()).toContain('"msg":"stopping"'));
  decide(200);
  expect(await stopped).toBe(0);
  await startAll();
  await post(ingest, "LAST-2");
  await waitFor(() => expect(eventsOf(subscriber.taken, "LAST-2")).toHaveLength(1));
  expect(eventsOf(subscriber.received, "LAST-1")).toHaveLength(1);
});

test("both keys sign while a secret is rotated", async () => {
  const { ingest } = await startAll();
  const { name, subscriber, signingKey: before } = await subscribe();
  await post(ingest, "ROTATED-1");
  await waitFor(() => expect(subscriber.taken).toHaveLength(1));
  const after = createSigningKey("hmac");
  await rotateKeys(own.pool, { name, signingKey: after, tokenSha256: null, keepHours: 1 });
  let posted = 1;
  await waitFor(async () => {
    await post(ingest, `ROTATED-${randomBytes(4).toString("hex")}`);
    posted += 1;
    expect(subscriber.taken.at(-1)?.headers["webhook-signature"]).toMatch(/^v1,\S+ v1,\S+$/);
  });
  for (const key of [before, after]) verify(key, subscriber.taken.at(-1) as Received);
  // Or the next subscriber hears of some.
  await waitFor(() => expect(subscriber.taken).toHaveLength(posted));
});

test("a subscriber that answers 410 is paused with the reason, and begins where it was when it is resumed", async () => {
  const { ingest, webhooks } = await startAll();
  const { name, subscriber } = await subscribe();
  subscriber.answer = () => 410;
  await post(ingest, "GONE-1");
  const reason = "The subscriber answered 410: it wants no more.";
  await waitFor(async () =>
    expect(await findSubscription(own.pool, name)).toMatchObject({ pauseReason: reason, pausedBy: "webhooks" }),
  );
  await waitFor(() => expect(webhooks.output()).toContain(name));
  await post(ingest, "GONE-2");
  subscriber.answer = () => 200;
  await resumeSubscription(own.pool, name);
  await waitFor(() =>
    expect(subscriber.taken.map(describeEvent).toSorted()).toEqual([
      "GONE-1 booking.created 1",
      "GONE-2 booking.created 1",
    ]),
  );
  expect(subscriber.received).toHaveLength(3);
});

test("whoever can't be posted to pulls the same events, by a token", async () => {
  const { ingest, webhooks } = await startAll();
  const token = randomBytes(32).toString("base64url");
  await insertSubscription(own.pool, {
    ...{ name: "puller", url: null, mode: null, payload: "thin", signature: null, signingKey: null },
    ...{ partners: null, changes: null, countries: null, arrivalFromDays: null, arrivalToDays: null },
    ...{ tokenSha256: createHash("sha256").update(token).digest(), createdBy: "test" },
  });
  const from = (await findSubscription(own.pool, "puller"))?.fromId;
  const pull = (bearer: string) =>
    fetch(`${webhooks.url}/changes?after=${from}&wait=30`, { headers: { Authorization: `Bearer ${bearer}` } });
  expect((await pull("another")).status).toBe(401);
  const waiting = pull(token);
  await post(ingest, "PULLED-1");
  const answer = await waiting;
  expect(answer.status).toBe(200);
  expect(await answer.json()).toMatchObject({ changes: [{ type: "booking.created", subject: "PULLED-1" }] });
  expect(await webhooks.metrics()).toMatch(/^webhooks_pull_requests_total\{.*path="changes",status="401".*\} 1$/m);
});

test("without the setting, neither http nor a private address is posted to", async () => {
  const [ingest] = await Promise.all([own.running("ingest"), own.running("worker")]);
  await (await own.running("webhooks")).stop();
  await own.start("webhooks", { environment: { WEBHOOKS_ALLOW_PRIVATE: "false" } });
  const http = await subscribe();
  const https = await subscribe({ url: http.subscriber.url.replace("http:", "https:") });
  const named = await subscribe({ url: https.subscriber.url.replace("http://127.0.0.1", "https://localhost") });
  await post(ingest, "PRIVATE-1");
  await waitFor(async () => {
    expect(await failureOf(http.name)).toBe("not-https");
    expect(await failureOf(https.name)).toBe("private-address");
    expect(await failureOf(named.name)).toBe("private-address");
  });
  expect(http.subscriber.received).toEqual([]);
});

test("while PostgreSQL is down, the process says so, and afterwards it delivers what came", async () => {
  const { ingest, webhooks } = await startAll();
  const { subscriber } = await subscribe();
  await own.postgres.stop();
  await post(ingest, "OUTAGE-1");
  await waitFor(async () =>
    expect(await webhooks.readiness()).toMatchObject({
      status: 503,
      body: { problems: [expect.stringMatching(/^PostgreSQL cannot be read \(\w+\)\. /)] },
    }),
  );
  const other = await own.start("webhooks", { isReady: false });
  await waitFor(async () => expect((await other.readiness()).status).toBe(503));
  expect(await other.stop("SIGTERM")).toBe(0);
  await own.postgres.restart();
  await webhooks.untilReady();
  await waitFor(() => expect(subscriber.taken.map(describeEvent)).toEqual(["OUTAGE-1 booking.created 1"]));
});

test("a setting that it does not know the meaning of is refused", async () => {
  const webhooks = await own.start("webhooks", {
    environment: { WEBHOOKS_PROXY_URL: "proxy:3128", WEBHOOKS_ALLOW_PRIVATE: "perhaps" },
    isReady: false,
  });
  expect(await webhooks.exited).toBe(1);
  expect(webhooks.output()).toContain("WEBHOOKS_PROXY_URL must be a URL that starts with http:// or https://");
  expect(webhooks.output()).toContain("WEBHOOKS_ALLOW_PRIVATE must be true or false");
});
