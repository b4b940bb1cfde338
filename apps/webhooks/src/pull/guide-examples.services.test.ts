import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { FeedOfBookings } from "@booking-events/feed/testing/feed-of-bookings";
import { waitFor } from "@booking-events/harness";
import { findLanguage, readGuideCode } from "@booking-events/harness/guide-code";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { createLogger } from "@booking-events/runtime";
import { insertSubscription } from "@booking-events/store";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createPull, type Pull } from "./create-pull.ts";

/** The program that the guide prints. It prints what it is given here. */
const guide = "docs/subscriber-guide.md";
const python = `${readGuideCode(guide, "python", "def follow")}
follow(lambda change: print(change["id"], change["subject"], flush=True))`;
const { program, isHere, title } = findLanguage("Python", "python3", ["-c", "import urllib.request"]);

const { pool, url } = useTestDatabase({ maxConnections: 4 });
const feed = new FeedOfBookings(pool);
let pull: Pull;
let server: Server;

beforeAll(async () => {
  const logger = createLogger({ name: "test", level: "silent" });
  const options = { database: pool, databaseUrl: url, schema: "public", logger };
  pull = createPull({ ...options, observe: () => {}, isStopping: () => false });
  server = createServer(pull.answer);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});

afterAll(async () => {
  server?.closeAllConnections();
  server?.close();
  await pull?.close();
});

async function subscribe(): Promise<string> {
  await pool.query("truncate subscriptions");
  await feed.clear();
  const token = randomBytes(32).toString("base64url");
  await insertSubscription(pool, {
    ...{
      name: "warehouse",
      url: null,
      mode: null,
      payload: "thin",
      signature: null,
      signingKey: null,
      createdBy: "Ada",
    },
    ...{ partners: null, changes: null, countries: null, arrivalFromDays: null, arrivalToDays: null },
    tokenSha256: createHash("sha256").update(token).digest(),
  });
  return token;
}

test.skipIf(!isHere)(`in ${title}, the printed program follows the feed, and goes on where it was`, async () => {
  const token = await subscribe();
  const folder = await mkdtemp(join(tmpdir(), "guide-"));
  const { port } = server.address() as AddressInfo;
  const start = () => {
    const environment = { FEED_URL: `http://127.0.0.1:${port}`, FEED_TOKEN: token, PATH: process.env["PATH"] };
    const child = spawn(program, ["-c", python], {
      cwd: folder,
      env: environment,
      stdio: ["ignore", "pipe", "ignore"],
    });
    const lines: string[] = [];
    createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
    const ended = once(child, "exit");
    onTestFinished(() => void child.kill("SIGKILL"));
    return { lines, ended, stop: () => child.kill("SIGKILL") };
  };
  onTestFinished(() => rm(folder, { recursive: true }));

  await feed.save("A");
  const first = start();
  await waitFor(() => expect(first.lines).toEqual(["1 A"]));
  await feed.save("B");
  await waitFor(() => expect(first.lines).toEqual(["1 A", "2 B"]));
  await waitFor(async () => expect(await readFile(join(folder, "place.txt"), "utf8")).toBe("2"));
  first.stop();
  await first.ended;

  await feed.save("C");
  const second = start();
  await waitFor(() => expect(second.lines).toEqual(["3 C"]));
  await pool.query("delete from subscriptions");
  pull.forgetTokens();
  await feed.save("D");
  const [exitCode] = await second.ended;
  expect(exitCode).not.toBe(0);
  expect(second.lines).toEqual(["3 C"]);
});
