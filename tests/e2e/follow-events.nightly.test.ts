import { spawn } from "node:child_process";
import { waitFor } from "@booking-events/harness";
import { afterEach, expect, test } from "vitest";
import { postAccepted } from "./post-event.ts";
import { type RunningApp, useOwnServices } from "./surroundings.ts";

const secret = "a-secret-of-the-tests-that-follow-events";
const own = useOwnServices(secret);
const recovery = { timeoutMs: 60_000 };
let stop = () => {};

afterEach(() => stop());

function post(ingest: RunningApp, kind: string, number: number, name: string): Promise<string> {
  return postAccepted(ingest, { secret, kind, reference: `T-${number}`, fields: { consumerGivenName: name } });
}

/** Five events with four outcomes for each booking. */
async function postHistories(ingest: RunningApp, numbers: number[]): Promise<void> {
  await Promise.all(
    numbers.map(async (number) => {
      await post(ingest, "create", number, "Canary");
      await post(ingest, "create", number, "Canary");
      await post(ingest, "update", number, "Canary Two");
      await post(ingest, "delete", number, "Canary");
      await post(ingest, "create", number, "Canary");
    }),
  );
}

function followEvents() {
  const child = spawn(
    process.execPath,
    ["apps/ops/dist/main.js", "events", "list", "--follow", "--json", "--limit", "1000"],
    {
      env: own.environment,
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  stop = () => void child.kill("SIGKILL");
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ids = (): string[] =>
    stdout
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line).id);
  return { ids, stderr: () => stderr };
}

async function idsInLog(): Promise<string[]> {
  const { rows } = await own.pool.query<{ id: string }>("select id from booking_events order by id");
  return rows.map(({ id }) => id);
}

test("each event that workers apply is shown once, whatever its outcome, across a restart of PostgreSQL", async () => {
  const [ingest] = await Promise.all([own.start("ingest"), own.start("worker"), own.start("worker")]);
  const numbers = (from: number) => Array.from({ length: 60 }, (_, index) => from + index);
  const shownAll = (follower: ReturnType<typeof followEvents>, count: number) =>
    waitFor(async () => {
      const ids = await idsInLog();
      expect(ids).toHaveLength(count);
      expect(follower.ids().sort()).toEqual(ids);
    }, recovery);

  const follower = followEvents();
  await postHistories(ingest, numbers(0));
  await shownAll(follower, 300);

  own.postgres.kill("SIGKILL");
  await postHistories(ingest, numbers(100));
  await waitFor(() => expect(follower.stderr()).toMatch(/Trying again until Ctrl-C/), recovery);
  await own.postgres.restart();
  await shownAll(follower, 600);
  expect(follower.stderr()).toMatch(/^[^\n]*Trying again until Ctrl-C\.\nPostgreSQL can be reached again\.\n$/);
});
