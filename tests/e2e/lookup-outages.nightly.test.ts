import { uniquePrefix, waitFor } from "@booking-events/harness";
import { connect, requestBytes } from "@booking-events/harness/http-client";
import { migrate } from "@booking-events/store";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { postAccepted } from "./post-event.ts";
import { type RunningApp, useOwnServices } from "./surroundings.ts";

const secret = "a-secret-of-the-lookup-outage-tests-0123";
/** How long a test waits for a recovery. It asserts no time. */
const recovery = { timeoutMs: 60_000 };
const own = useOwnServices(secret);

beforeAll(() => migrate(own.postgres.url));

beforeEach(() => {
  own.environment["QUEUE_PREFIX"] = uniquePrefix();
});

async function ask(lookup: RunningApp, eventId: string) {
  const response = await fetch(`${lookup.url}/booking-event/receipt/${secret}/${eventId}`);
  const body = (await response.json()) as { status?: string };
  return { status: response.status, retryAfter: response.headers.get("retry-after"), body };
}

const unavailable = { status: 503, retryAfter: "5" };

test("while PostgreSQL is down, a receipt gets 503 with Retry-After, never 404, and lookup recovers", async () => {
  const [ingest, lookup] = await Promise.all([own.start("ingest"), own.start("lookup")]);
  const eventId = await postAccepted(ingest, { secret, reference: "TRIP-1" });
  expect(await ask(lookup, eventId)).toMatchObject({ status: 200, body: { status: "waiting" } });
  own.postgres.kill("SIGKILL");
  for (const id of [eventId, "01a1fb0c-d72c-7345-a7ee-38bfa851309c"])
    expect(await ask(lookup, id)).toMatchObject(unavailable);
  await waitFor(async () => expect((await lookup.readiness()).body.problems?.join()).toMatch(/PostgreSQL/));
  await own.postgres.restart();
  await waitFor(async () => expect(await ask(lookup, eventId)).toMatchObject({ status: 200 }), recovery);
  await lookup.untilReady();
});

test("while Redis is down, what PostgreSQL knows is answered, and everything else gets 503", async () => {
  const [ingest, , lookup] = await Promise.all([own.start("ingest"), own.start("worker"), own.start("lookup")]);
  const applied = await postAccepted(ingest, { secret, reference: "TRIP-1" });
  await waitFor(async () => expect((await ask(lookup, applied)).body).toMatchObject({ status: "applied" }));
  own.redis.kill("SIGKILL");
  expect(await ask(lookup, applied)).toMatchObject({ status: 200, body: { status: "applied" } });
  expect(await ask(lookup, "01a1fb0c-d72c-7345-a7ee-38bfa851309c")).toMatchObject(unavailable);
  await own.redis.restart();
  await waitFor(
    async () => expect(await ask(lookup, "01a1fb0c-d72c-7345-a7ee-38bfa851309c")).toMatchObject({ status: 404 }),
    recovery,
  );
});

test("a lookup that starts while Redis is down answers nothing, since it does not know which secrets were revoked", async () => {
  const [ingest, , lookup] = await Promise.all([own.start("ingest"), own.start("worker"), own.start("lookup")]);
  const applied = await postAccepted(ingest, { secret, reference: "TRIP-1" });
  await waitFor(async () => expect((await ask(lookup, applied)).body).toMatchObject({ status: "applied" }));
  own.redis.kill("SIGKILL");
  const late = await own.start("lookup", { isReady: false });
  // It listens a moment later than it is started.
  await waitFor(async () => expect(await ask(late, applied)).toMatchObject(unavailable), recovery);
  await own.redis.restart();
  await waitFor(async () => expect((await ask(late, applied)).body).toMatchObject({ status: "applied" }), recovery);
});

test("while PostgreSQL or Redis is frozen, questions are refused instead of waiting", async () => {
  const lookup = await own.start("lookup");
  const eventId = "01a1fb0c-d72c-7345-a7ee-38bfa851309c";
  for (const server of [own.redis, own.postgres]) {
    server.kill("SIGSTOP");
    try {
      const answers = await Promise.all(Array.from({ length: 20 }, () => ask(lookup, eventId)));
      for (const answer of answers) expect(answer).toMatchObject(unavailable);
    } finally {
      server.kill("SIGCONT");
    }
    await waitFor(async () => expect(await ask(lookup, eventId)).toMatchObject({ status: 404 }), recovery);
  }
});

test("a stop does not wait for a list whose sender has stalled", async () => {
  const lookup = await own.start("lookup");
  const stalled = await connect(lookup.port);
  const headers = { "Content-Type": "application/x-ndjson" };
  const list = requestBytes({ path: `/booking-event/reconcile/${secret}`, headers, body: '{"reference":"A"}\n' });
  stalled.send(list.subarray(0, -5));
  await waitFor(async () => expect(await lookup.metrics()).toMatch(/^lookup_requests_in_flight\S* 1$/m));
  expect(await lookup.stop("SIGTERM")).toBe(0);
  await stalled.closed;
}, 60_000);

test("while PostgreSQL is down, a list gets 503 with Retry-After", async () => {
  const lookup = await own.start("lookup");
  const reconcile = () =>
    fetch(`${lookup.url}/booking-event/reconcile/${secret}`, {
      method: "POST",
      headers: { "Content-Type": "application/x-ndjson" },
      body: '{"reference":"A"}\n',
    });
  expect(await (await reconcile()).text()).toContain("summary");
  own.postgres.kill("SIGKILL");
  const refused = await reconcile();
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "5"]);
  await own.postgres.restart();
  await waitFor(async () => expect((await reconcile()).status).toBe(200), recovery);
});

test("while Redis or PostgreSQL is down, a partner's activity is unknown, never empty", async () => {
  const lookup = await own.start("lookup");
  const activity = async () => {
    const response = await fetch(`${lookup.url}/booking-event/activity/${secret}`);
    return { status: response.status, retryAfter: response.headers.get("retry-after") };
  };
  for (const server of [own.redis, own.postgres]) {
    // What was found is kept for some seconds.
    server.kill("SIGKILL");
    await waitFor(async () => expect(await activity()).toMatchObject(unavailable), recovery);
    for (let count = 0; count < 20; count += 1) expect(await activity()).toMatchObject(unavailable);
    await server.restart();
    await waitFor(async () => expect(await activity()).toMatchObject({ status: 200 }), recovery);
  }
});

test("a stop lets requests under way finish, and exits with 0", async () => {
  const lookup = await own.start("lookup");
  expect(await ask(lookup, "x")).toMatchObject({ status: 404 });
  expect(await lookup.stop("SIGTERM")).toBe(0);
}, 60_000);
