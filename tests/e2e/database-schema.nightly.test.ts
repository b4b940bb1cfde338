import { follow } from "@booking-events/feed";
import { uniquePrefix, waitFor } from "@booking-events/harness";
import { execute } from "@booking-events/harness/execute";
import { afterEach, expect, test } from "vitest";
import { postAccepted } from "./post-event.ts";
import { printedByOps } from "./run-ops.ts";
import { prepareSurroundings, type RunningApp } from "./surroundings.ts";

const secret = "a-secret-of-the-schema-tests-0123456789";
/** It means itself only in quotation marks. */
const otherSchema = "Order";
const surroundings = prepareSurroundings(secret);

interface Deployment {
  environment: Record<string, string>;
  ingest: RunningApp;
}

async function deploy(environment: Record<string, string> = {}): Promise<Deployment> {
  const { start } = surroundings();
  const own = { ...environment, QUEUE_PREFIX: uniquePrefix() };
  const [ingest] = await Promise.all([start("ingest", { environment: own }), start("worker", { environment: own })]);
  return { environment: own, ingest };
}

const following = new AbortController();
afterEach(() => following.abort());

/** @returns the references of the changes that the follower gets */
function startFollower(options: { schema?: string }): (string | null)[] {
  const references: (string | null)[] = [];
  void follow({
    name: "test",
    database: surroundings().environment["DATABASE_URL"] as string,
    signal: following.signal,
    onChange: async ({ reference, payload }) => {
      expect(payload).toEqual({ consumerTripPartnerExternalReference: reference });
      references.push(reference);
    },
    ...options,
  });
  return references;
}

function ops(args: string[], { environment }: Deployment): Promise<string> {
  return printedByOps(args, { ...surroundings().environment, ...environment });
}

const referencesIn = (json: string) => (JSON.parse(json) as { reference: string }[]).map(({ reference }) => reference);

test("deployments in two schemas of one database neither see nor wake each other", async () => {
  const [first, second] = await Promise.all([deploy(), deploy({ DATABASE_SCHEMA: otherSchema })]);
  const followed = [startFollower({}), startFollower({ schema: otherSchema })];
  const listener = await surroundings().pool.connect();
  const woken: string[] = [];
  listener.on("notification", ({ channel }) => woken.push(channel));
  await listener.query(`listen booking_changes; listen "${otherSchema}"`);

  await postAccepted(second.ingest, { secret, reference: "IN-SECOND" });
  await waitFor(() => expect(woken).toEqual([otherSchema]));
  await postAccepted(first.ingest, { secret, reference: "IN-FIRST" });
  await waitFor(() => expect(woken).toEqual([otherSchema, "booking_changes"]));
  await waitFor(() => expect(followed).toEqual([["IN-FIRST"], ["IN-SECOND"]]));
  expect(referencesIn(await ops(["events", "list", "--json"], first))).toEqual(["IN-FIRST"]);
  expect(referencesIn(await ops(["events", "list", "--json"], second))).toEqual(["IN-SECOND"]);
  const { rows } = await listener.query(
    `select public.reference as first, other.reference as second
     from public.booking_details as public, "${otherSchema}".booking_details as other`,
  );
  expect(rows).toEqual([{ first: "IN-FIRST", second: "IN-SECOND" }]);
  listener.release(true);
}, 60_000);

test("a worker whose schema must not be created says so in a sentence, and waits", async () => {
  const { pool, environment, start } = surroundings();
  const role = `schemaless_${process.pid}`;
  await pool.query(`create role ${role} login password 'secret'`);
  try {
    const url = Object.assign(new URL(environment["DATABASE_URL"] as string), { username: role, password: "secret" });
    const settings = { DATABASE_URL: url.href, DATABASE_SCHEMA: "other" };
    const worker = await start("worker", { environment: settings, isReady: false });
    await waitFor(async () => expect((await worker.readiness()).body.problems?.join()).toContain("42501"));
    const sentence = 'The schema "other" does not exist, and the user of DATABASE_URL may not create it';
    await waitFor(() =>
      expect(worker.logLines().map(({ msg }) => String(msg))).toContainEqual(expect.stringContaining(sentence)),
    );
    await pool.query(
      `create schema other authorization ${role}; create schema other_test_partners authorization ${role}`,
    );
    await worker.untilReady();
    await worker.stop("SIGTERM");
  } finally {
    await pool.query(`drop schema if exists other, other_test_partners cascade; drop role ${role}`);
  }
}, 60_000);

test("a worker whose database has another encoding than UTF8 ends, and says why", async () => {
  const { environment, start } = surroundings();
  const url = environment["DATABASE_URL"] as string;
  const name = `latin_${process.pid}`;
  await execute(url, `create database ${name} encoding 'LATIN1' locale 'C' template template0`);
  try {
    const settings = { DATABASE_URL: Object.assign(new URL(url), { pathname: `/${name}` }).href };
    const worker = await start("worker", { environment: settings, isReady: false });
    expect(await worker.exited).toBe(1);
    expect(worker.output()).toContain("has the encoding LATIN1, which can't hold every event.");
    await expect(printedByOps(["migrate"], { ...environment, ...settings })).rejects.toThrow("has the encoding LATIN1");
  } finally {
    await execute(url, `drop database ${name} with (force)`);
  }
}, 60_000);
