import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { openRecords } from "@booking-events/queue";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runOps } from "../testing/run-ops.ts";

const now = new Date("2026-11-22T12:00:00Z");
const environment = { REDIS_URL: redisUrl(), QUEUE_PREFIX: uniquePrefix(), PARTNERS_FILE: "" };
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "ops-warnings-"));
  environment.PARTNERS_FILE = join(folder, "partners.json");
  await run("add", "acme");
});
afterAll(() => rm(folder, { recursive: true }));

const run = (...args: string[]) => runOps(["partners", ...args], { environment, now });

test("warnings shows how often each field got which warning in seven days, and when last", async () => {
  expect(await run("warnings", "acme")).toEqual({
    ...{ exitCode: 0, stdout: "acme got no warnings in 7 days.\n", stderr: "" },
  });
  const records = openRecords({ ...settings(), connectionName: "test", onError: () => {} });
  const name = { partner: "acme", field: "consumerGivenName", code: "similar-name" };
  const phone = { partner: "acme", field: "consumerPhone", code: "unreadable-phone" };
  const counts = [
    { ...name, day: "2026-11-22", count: 40 },
    { ...phone, day: "2026-11-21", count: 3 },
    { ...phone, day: "2026-11-16", count: 400 },
    { ...phone, day: "2026-11-15", count: 9_000 },
    { ...phone, partner: "other", day: "2026-11-22", count: 9_000 },
  ];
  // The writer does not wait for a connection that is still being opened.
  await waitFor(() => records.addWarningCounts(counts).then(() => true));
  records.close();

  const { exitCode, stdout } = await run("warnings", "acme");
  expect(exitCode).toBe(0);
  expect(stdout.split("\n").map((line) => line.trim().split(/ {2,}/))).toEqual([
    ["FIELD", "WARNING", "COUNT", "LAST DAY"],
    ["consumerPhone", "unreadable-phone", "403", "2026-11-21"],
    ["consumerGivenName", "similar-name", "40", "2026-11-22"],
    [""],
  ]);
  expect(JSON.parse((await run("warnings", "acme", "--json")).stdout)).toEqual([
    { field: "consumerPhone", code: "unreadable-phone", count: 403, lastDay: "2026-11-21" },
    { field: "consumerGivenName", code: "similar-name", count: 40, lastDay: "2026-11-22" },
  ]);
});

test("warnings fails for a partner that is not in the file, and if Redis does not answer", async () => {
  const stderrOfUnknown = `There is no partner acne in ${environment.PARTNERS_FILE}.\n`;
  expect(await run("warnings", "acne")).toEqual({ exitCode: 1, stdout: "", stderr: stderrOfUnknown });
  const unreachable = { ...environment, REDIS_URL: "redis://127.0.0.1:1" };
  const { exitCode, stderr } = await runOps(["partners", "warnings", "acme"], { environment: unreachable });
  expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringMatching(/^Redis at .* does not answer/) });
});

function settings() {
  return { redisServers: environment.REDIS_URL, prefix: environment.QUEUE_PREFIX };
}
