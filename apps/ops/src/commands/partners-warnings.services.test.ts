import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { openRecords } from "@booking-events/queue";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runOps } from "../testing/run-ops.ts";

const now = new Date("2026-11-22T12:00:00Z");
const environment = { REDIS_URL: redisUrl(), QUEUE_PREFIX: uniquePrefix(), PARTNERS_FILE: "" };
const eventId = "01a1fafe-d690-7608-9309-bff7f221cbc9";
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "ops-warnings-"));
  environment.PARTNERS_FILE = join(folder, "partners.json");
  await run("add", "acme");
  await run("add", "other");
});
afterAll(() => rm(folder, { recursive: true }));

const run = (...args: string[]) => runOps(["partners", ...args], { environment, now });

test("warnings shows how often each field got which warning in seven days, when, and with which event last", async () => {
  expect(await run("warnings", "acme")).toEqual({
    ...{ exitCode: 0, stdout: "acme got no warnings in 7 days.\n", stderr: "" },
  });
  const records = openRecords({ ...settings(), connectionName: "test", onError: () => {} });
  const at = { firstAt: new Date("2026-11-22T08:00:00Z"), lastAt: new Date("2026-11-22T09:00:00Z") };
  const earlier = { firstAt: new Date("2026-11-16T08:00:00Z"), lastAt: new Date("2026-11-16T09:00:00Z") };
  const name = { partner: "acme", field: "consumerGivenName", code: "similar-name", ...at, lastEventId: null };
  const phone = { partner: "acme", field: "consumerPhone", code: "unreadable-phone", ...at, lastEventId: eventId };
  const request = { partner: "other", field: "", code: "empty-key", ...at, lastEventId: eventId };
  const counts = [
    { ...name, day: "2026-11-22", count: 40 },
    { ...phone, day: "2026-11-22", count: 3, lastEventId: null },
    { ...phone, ...earlier, day: "2026-11-16", count: 400 },
    { ...phone, ...earlier, day: "2026-11-15", count: 9_000 },
    { ...request, day: "2026-11-22", count: 9_000 },
  ];
  // The writer does not wait for a connection that is still being opened.
  await waitFor(() => records.addFieldCounts("warnings", counts).then(() => true));
  records.close();

  const { exitCode, stdout } = await run("warnings", "acme");
  expect(exitCode).toBe(0);
  const phoneCells = [
    "consumerPhone",
    "unreadable-phone",
    "403",
    "2026-11-16T08:00:00Z",
    "2026-11-22T09:00:00Z",
    eventId,
  ];
  const header = ["FIELD", "WARNING", "COUNT", "FIRST", "LAST", "LAST EVENT"];
  expect(cellsOf(stdout)).toEqual([
    header,
    phoneCells,
    ["consumerGivenName", "similar-name", "40", "2026-11-22T08:00:00Z", "2026-11-22T09:00:00Z", "a dry run"],
  ]);
  expect(cellsOf((await run("warnings")).stdout).slice(0, 3)).toEqual([
    ["PARTNER", ...header],
    ["other", "-", "empty-key", "9000", "2026-11-22T08:00:00Z", "2026-11-22T09:00:00Z", eventId],
    ["acme", ...phoneCells],
  ]);
  const last = "2026-11-22T09:00:00.000Z";
  expect(JSON.parse((await run("warnings", "acme", "--json")).stdout)).toEqual([
    { ...phone, count: 403, firstAt: "2026-11-16T08:00:00.000Z", lastAt: last },
    { ...name, count: 40, firstAt: "2026-11-22T08:00:00.000Z", lastAt: last },
  ]);
});

test("warnings fails for a partner that is not in the file, and if Redis does not answer", async () => {
  const stderrOfUnknown = `There is no partner acne in ${environment.PARTNERS_FILE}.\n`;
  expect(await run("warnings", "acne")).toEqual({ exitCode: 1, stdout: "", stderr: stderrOfUnknown });
  const unreachable = { ...environment, REDIS_URL: "redis://127.0.0.1:1" };
  const { exitCode, stderr } = await runOps(["partners", "warnings", "acme"], { environment: unreachable });
  expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringMatching(/^Redis at .* does not answer/) });
});

function cellsOf(table: string): string[][] {
  return table
    .trimEnd()
    .split("\n")
    .map((line) => line.trim().split(/ {2,}/));
}

function settings() {
  return { redisServers: environment.REDIS_URL, prefix: environment.QUEUE_PREFIX };
}

test("week counts what was accepted and refused, beside the week before, of one partner or of all", async () => {
  const records = openRecords({ ...settings(), connectionName: "test", onError: () => {} });
  const accepted = { partner: "acme", hour: "2026-11-22T11", status: 200, code: "accepted", count: 30 };
  const counts = [
    accepted,
    { ...accepted, code: "dry-run", count: 4_000 },
    { ...accepted, hour: "2026-11-15T13", count: 5 },
    { ...accepted, hour: "2026-11-15T12", count: 700 },
    { ...accepted, hour: "2026-11-08T12", count: 9_000 },
    { ...accepted, status: 422, code: "invalid-data", count: 2 },
    { ...accepted, status: 503, code: "overloaded", count: 60 },
  ];
  await waitFor(() => records.addAnswerCounts(counts).then(() => true));
  records.close();

  const { exitCode, stdout } = await run("week");
  expect(exitCode).toBe(0);
  expect(cellsOf(stdout)).toEqual([
    ["PARTNER", "ACCEPTED", "REFUSED", "ACCEPTED BEFORE", "REFUSED BEFORE"],
    ["acme", "35", "2", "700", "0"],
    ["other", "0", "0", "0", "0"],
  ]);
  const [week] = JSON.parse((await run("week", "acme", "--json")).stdout);
  expect(week).toMatchObject({ partner: "acme", accepted: 35, acceptedWeekBefore: 700 });
  expect(week.hours).toHaveLength(168);
  expect(week.hours.at(-1)).toEqual({ at: "2026-11-22T12:00:00.000Z", accepted: 0, acceptedWeekBefore: 700 });
  expect(await run("week", "nobody")).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("nobody") });
});
