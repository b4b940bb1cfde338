import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "@booking-events/harness";
import { afterEach, beforeEach, expect, test } from "vitest";
import { AcceptedRecord } from "./keep-accepted.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "booking-events-accepted-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const request = { requestId: "request-1", method: "POST", partner: "acme" };
const accepted = (eventId: string) => ({ ...request, status: 200, outcome: "accepted", eventId });
const readIds = () =>
  readdirSync(folder)
    .toSorted()
    .flatMap((name) => readFileSync(join(folder, name), "utf8").trimEnd().split("\n"))
    .map((line) => line.split("\t").slice(1).join(" "));

test("accepted events are kept, refused ones are not", async () => {
  const record = new AcceptedRecord(folder, (error) => expect.fail(String(error)));
  record.record(accepted("event-1"));
  record.record({ ...request, status: 503, outcome: "overloaded" });
  record.record(accepted("event-2"));
  await record.stop();
  expect(readIds()).toEqual(["acme event-1", "acme event-2"]);
});

test("what earlier processes have kept stays, until all files together are too large", async () => {
  const limits = { fileBytes: 40, allBytes: 130 };
  for (const id of ["event-1", "event-2", "event-3", "event-4"]) {
    const record = new AcceptedRecord(folder, (error) => expect.fail(String(error)), limits);
    record.record(accepted(id));
    await record.stop();
    // The names of files have the time.
    await sleep(2);
  }
  expect(readIds()).toEqual(["acme event-2", "acme event-3", "acme event-4"]);
});

test("a folder that can't be written is reported, and stops nothing", async () => {
  const errors: unknown[] = [];
  const record = new AcceptedRecord(join(folder, "nowhere"), (error) => errors.push(error));
  record.record(accepted("event-1"));
  await record.stop();
  expect(errors).toEqual([expect.objectContaining({ code: "ENOENT" })]);
});

test("what could not be written is written when it can be, before what came later", async () => {
  const errors: unknown[] = [];
  rmSync(folder, { recursive: true });
  const record = new AcceptedRecord(folder, (error) => errors.push(error));
  record.record(accepted("event-1"));
  await waitFor(() => expect(errors).not.toEqual([]));
  mkdirSync(folder);
  record.record(accepted("event-2"));
  await record.stop();
  expect(readIds()).toEqual(["acme event-1", "acme event-2"]);
});

test("a file that another ingest has removed meanwhile stops nothing", async () => {
  // It is listed and not there.
  symlinkSync("nowhere", join(folder, "accepted-2026.tsv"));
  const errors: unknown[] = [];
  const record = new AcceptedRecord(folder, (error) => errors.push(error));
  record.record(accepted("event-1"));
  await record.stop();
  expect(errors).toEqual([]);
});
