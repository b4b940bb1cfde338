import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { connect, requestBytes } from "@booking-events/harness/http-client";
import { partner } from "@booking-events/harness/partners";
import { writePartnersFile } from "@booking-events/harness/partners-file";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type RunningMain, startMain } from "../testing/run-main.ts";

const requests = 500;
const connections = 8;
/**
 * Requests of each cause have one line immediately and then one a second; a slow machine may take this long for all.
 */
const maxLines = 100;
const maxBytes = 25_000;

let folder: string;
let main: RunningMain;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "booking-events-flood-"));
  const partners = [partner("limited", { "limited-secret": null }, { rateLimit: { perSecond: 0.01, burst: 1 } })];
  writePartnersFile(join(folder, "partners.json"), partners);
});

/** A test that stops it leaves the next one to a new process. */
beforeEach(async () => {
  if (main?.isRunning()) return;
  main = await startMain({
    REDIS_URL: redisUrl(),
    QUEUE_PREFIX: uniquePrefix(),
    PARTNERS_FILE: join(folder, "partners.json"),
  });
});

afterAll(async () => {
  await main?.stop("SIGKILL");
  rmSync(folder, { recursive: true });
});

/** As fast as possible on a few connections, with new ones where the server closes them. */
async function flood(bytes: Buffer): Promise<Map<number, number>> {
  const statuses = new Map<number, number>();
  let left = requests;
  async function sendOn(): Promise<void> {
    let connection = await connect(main.port);
    while (left > 0) {
      left -= 1;
      connection.send(bytes);
      const { status, headers } = await connection.answer();
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (headers["Connection"] !== "close") continue;
      connection.socket.destroy();
      connection = await connect(main.port);
    }
    connection.socket.destroy();
  }
  await Promise.all(Array.from({ length: connections }, sendOn));
  return statuses;
}

/** The number of requests in the log, by their own lines and by counts. */
function countLogged(outcome: string): number {
  return main
    .logLines()
    .filter((line) => line["outcome"] === outcome)
    .reduce((sum, { repeated = 1 }) => sum + Number(repeated), 0);
}

test.each([
  { what: "paths that are not there", path: "/nowhere", outcome: "no-such-path", statuses: [404] },
  {
    what: "a partner that sends too much",
    path: "/booking-event/create/limited-secret",
    outcome: "over-rate-limit",
    statuses: [422, 429],
  },
  { what: "guessed secrets", path: "/booking-event/create/a-guess", outcome: "unknown-secret", statuses: [403, 429] },
])("hundreds of requests for $what write few lines, which count all of them", async ({ path, outcome, statuses }) => {
  const [bytesBefore, linesBefore] = [main.output().length, main.logLines().length];
  const answers = await flood(requestBytes({ path }));
  expect([...answers.keys()].toSorted()).toEqual(statuses);
  const refused = requests - (answers.get(422) ?? 0);
  await waitFor(() => expect(countLogged(outcome)).toBe(refused));
  expect(main.logLines().length - linesBefore).toBeLessThan(maxLines);
  expect(main.output().length - bytesBefore).toBeLessThan(maxBytes);
  for (const status of statuses) {
    const metric = new RegExp(`^ingest_requests_total\\{.*status="${status}".*\\} ${answers.get(status)}$`, "m");
    expect(await main.metrics()).toMatch(metric);
  }
});

test("a stopping process logs the counts of its last second", async () => {
  const loggedBefore = countLogged("no-such-path");
  await flood(requestBytes({ path: "/nowhere" }));
  main.child.kill("SIGTERM");
  expect(await main.exited).toBe(0);
  expect(countLogged("no-such-path") - loggedBefore).toBe(requests);
});

test("hundreds of requests to the admin port log nothing", async () => {
  const linesBefore = main.output();
  for (const bytes of [requestBytes({ method: "GET", path: "/nowhere" }), Buffer.from("no HTTP\r\n\r\n")]) {
    for (let i = 0; i < 100; i += 1) {
      const connection = await connect(main.adminPort);
      connection.send(bytes);
      await connection.answer({ toHead: true });
      connection.socket.destroy();
    }
  }
  // Lines are in order, so earlier ones would have arrived before this one.
  main.child.kill("SIGTERM");
  expect(await main.exited).toBe(0);
  const written = main.output().slice(linesBefore.length).trimEnd().split("\n");
  expect(written.map((line) => JSON.parse(line).msg)).toEqual(["stopping", "stopped"]);
});
