import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { join } from "node:path";
import { waitFor } from "@booking-events/harness";
import { runOps } from "@booking-events/ops/testing/run-ops";
import { type Certificate, createCertificate } from "@booking-events/scripts/certificates";
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { postAccepted } from "./post-event.ts";
import { type SubscriberServer, startSubscriber } from "./start-subscriber.ts";
import { type RunningApp, shareSurroundings } from "./surroundings.ts";

const secret = "a-secret-of-the-operated-webhooks-tests-01234";
const own = shareSurroundings(secret);
const cleanUp: (() => unknown)[] = [];
/** A certificate that is its own authority, and that webhooks trusts. */
let trusted: Certificate;
let ingest: RunningApp;

beforeAll(async () => {
  trusted = await createCertificate();
  const authorities = join(own.folder, "authorities.pem");
  writeFileSync(authorities, trusted.certificate);
  Object.assign(own.environment, { WEBHOOKS_ALLOW_PRIVATE: "true", NODE_EXTRA_CA_CERTS: authorities });
  [ingest] = await Promise.all([own.running("ingest"), own.running("worker")]);
});

// One test replaces it.
beforeEach(() => own.running("webhooks"));

afterEach(async () => {
  await own.pool.query("delete from subscriptions");
  for (const clean of cleanUp.splice(0)) await clean();
});

const ops = async (...args: string[]) => {
  const ran = await runOps(args, { environment: own.environment });
  expect(ran.exitCode, ran.stderr).toBe(0);
  return ran.stdout;
};
const json = async (...args: string[]) => JSON.parse(await ops(...args, "--json"));

async function startReceiver(tls?: Certificate): Promise<SubscriberServer> {
  const subscriber = await startSubscriber(tls);
  cleanUp.push(() => subscriber.close());
  return subscriber;
}

const add = (name: string, { url }: SubscriberServer, ...more: string[]) =>
  ops("subscriptions", "add", name, "--url", url, ...more);
const post = (reference: string, kind = "create", fields = {}) =>
  postAccepted(ingest, { secret, kind, reference, fields });
const takenBy = ({ taken }: SubscriberServer) => taken.map(({ event }) => `${event.subject} ${event.type}`);

/** Why the last attempts of a subscription's bookings failed. */
async function failuresOf(name: string): Promise<string[]> {
  const { rows } = await own.pool.query(
    "select failure from feed_deliveries where reader = $1 and failure is not null",
    [name],
  );
  return rows.map(({ failure }) => failure);
}

test("by https, a certificate of a trusted authority is accepted, and another one is not", async () => {
  const known = await startReceiver(trusted);
  const stranger = await startReceiver(await createCertificate());
  await add("known", known);
  await add("stranger", stranger);
  await post("HTTPS-1");
  await waitFor(async () => expect(await failuresOf("stranger")).toEqual(["DEPTH_ZERO_SELF_SIGNED_CERT"]));
  await waitFor(() => expect(takenBy(known)).toEqual(["HTTPS-1 booking.created"]));
  expect(stranger.received).toEqual([]);
});

test("all posts go through the proxy, if there is one, and nothing reaches the subscriber without it", async () => {
  const proxy = await startProxy();
  const subscriber = await startReceiver(trusted);
  await (await own.running("webhooks")).stop();
  // The proxy decides about addresses, so none has to be allowed.
  const environment = { WEBHOOKS_ALLOW_PRIVATE: "false", WEBHOOKS_PROXY_URL: proxy.url };
  await own.start("webhooks", { environment });
  await add("proxied", subscriber);
  await post("PROXY-1");
  await waitFor(() => expect(takenBy(subscriber)).toEqual(["PROXY-1 booking.created"]));
  expect(new Set(proxy.asked)).toEqual(new Set([new URL(subscriber.url).host]));
  proxy.refuse();
  await post("PROXY-2");
  // The answer to PROXY-1 may have been cut off with its tunnel, so it may fail too.
  await waitFor(async () => expect(await failuresOf("proxied")).toContain("ERR_PROXY_TUNNEL"));
  expect(subscriber.received).toHaveLength(1);
});

test("a dead letter is replayed or discarded while the process runs", async () => {
  const subscriber = await startReceiver();
  subscriber.answer = () => 500;
  await add("letters", subscriber, "--mode", "every");
  for (const reference of ["DEAD-1", "DEAD-2"]) await post(reference);
  await waitFor(async () => expect(await failuresOf("letters")).toEqual(["http-500", "http-500"]));
  await own.pool.query("update feed_deliveries set died_at = now(), retry_at = null where reader = 'letters'");
  subscriber.answer = () => 204;
  // It waits for the operator, too.
  await post("DEAD-2", "update", { note: "later" });
  const letters: { changeId: number; reference: string }[] = await json("subscriptions", "dead-letters", "letters");
  const idOf = (reference: string) => String(letters.find((letter) => letter.reference === reference)?.changeId);
  expect(letters).toHaveLength(2);
  const act = (...args: string[]) => json("subscriptions", "dead-letters", "letters", ...args, "--yes");
  expect(await act("--replay", idOf("DEAD-1"))).toEqual({ replayed: 1 });
  await waitFor(() => expect(takenBy(subscriber)).toEqual(["DEAD-1 booking.created"]));
  expect(await act("--discard", idOf("DEAD-2"))).toEqual({ discarded: 1 });
  await waitFor(() => expect(takenBy(subscriber)).toEqual(["DEAD-1 booking.created", "DEAD-2 booking.updated"]));
  expect(await json("subscriptions", "dead-letters", "letters")).toEqual([]);
});

test("after five days without a success a subscription is paused, and the day before, ops status warns", {
  timeout: 240_000,
}, async () => {
  const subscriber = await startReceiver();
  subscriber.answer = () => 500;
  await add("failing", subscriber);
  await post("FAILING-1");
  await waitFor(async () => expect(await failuresOf("failing")).toEqual(["http-500"]));
  const failFor = (hours: number) =>
    own.pool.query("update feed_readers set failing_since = now() - make_interval(hours => $1) where name = $2", [
      hours,
      "failing",
    ]);
  const readConcerns = async () => {
    const { stdout } = await runOps(["status", "--json"], { environment: own.environment });
    return JSON.parse(stdout).needsAttention;
  };
  await failFor(97);
  expect(await readConcerns()).toContain(
    'Everything that reader failing of the feed was given has failed for 4 d. See "SubscriptionFailing" in docs/runbook.md.',
  );
  await failFor(121);
  await waitFor(
    async () =>
      expect(await json("subscriptions", "show", "failing")).toMatchObject({
        ...{ pauseReason: "All posts have failed for 5 days.", pausedBy: "webhooks" },
      }),
    { timeoutMs: 120_000 },
  );
  expect(await readConcerns()).toContain("The subscription failing is paused. See why: ops subscriptions show failing");
  subscriber.answer = () => 204;
  await ops("subscriptions", "resume", "failing");
  await waitFor(() => expect(takenBy(subscriber)).toEqual(["FAILING-1 booking.created"]), { timeoutMs: 60_000 });
});

test("a filter decides from when it is set, and of what was given before, the end is still told", async () => {
  const subscriber = await startReceiver();
  const second = await startReceiver();
  const to = (country: string) => ({ consumerTripDestinationCountryName: country });
  await add("changing", subscriber);
  await post("BEFORE-1", "create", to("France"));
  await post("BEFORE-2", "create", to("France"));
  await waitFor(() => expect(subscriber.taken).toHaveLength(2));
  expect(await ops("subscriptions", "set", "changing", "--country", "ES", "--url", second.url)).toContain(
    "destinations ES",
  );
  await post("OUTSIDE", "create", to("France"));
  await post("BEFORE-1", "delete");
  await post("INSIDE", "create", to("Spain"));
  await post("BEFORE-2", "update", { note: "It has left the filter." });
  const expected = ["BEFORE-1 booking.deleted", "BEFORE-2 booking.updated", "INSIDE booking.created"];
  await waitFor(() => expect(takenBy(second).toSorted()).toEqual(expected));
  expect(subscriber.received).toHaveLength(2);
});

/** A proxy for https only. */
async function startProxy() {
  const asked: string[] = [];
  const sockets = new Set<Socket>();
  let isRefusing = false;
  const server = createServer((_, response) => response.writeHead(405).end());
  server.on("connect", ({ url = "" }, socket: Socket) => {
    asked.push(url);
    sockets.add(socket.on("error", () => {}));
    if (isRefusing) {
      socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
      return;
    }
    const { hostname, port } = new URL(`https://${url}`);
    const target = connect(Number(port), hostname, () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      target.pipe(socket).pipe(target);
    });
    target.on("error", () => socket.destroy());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  cleanUp.push(() => server.close());
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    /** Ends the tunnels, and opens no more. */
    refuse() {
      isRefusing = true;
      for (const socket of sockets) socket.destroy();
    },
  };
}
