import { createLogger } from "@booking-events/runtime";
import type { Pool } from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { DatabaseWatch } from "./watch-database.ts";

const id = "6e4f3c1a-0000-4000-8000-000000000001";
const database = { query: async () => ({ rows: [{ id, isEmpty: false }] }) } as unknown as Pool;

/** It looks once a second. */
const patience = { timeout: 4_000 };

test("nothing may be answered before it is known which database the queue feeds", async () => {
  let readDatabase = () => Promise.reject<string | null>(new Error("no answer"));
  const watch = new DatabaseWatch({
    queue: { readDatabase: () => readDatabase() },
    database,
    logger: createLogger({ name: "test", level: "fatal" }, { write: () => {} }),
  });
  const watching = new AbortController();
  onTestFinished(() => watching.abort());
  expect(watch.problem).toMatch(/not known/);
  await watch.start(watching.signal);
  expect(watch.problem).toMatch(/not known/);

  readDatabase = async () => id;
  await vi.waitFor(() => expect(watch.problem).toBeNull(), patience);
  readDatabase = async () => "another";
  await vi.waitFor(() => expect(watch.problem).toMatch(/The queue has fed the database another/), patience);
  // What was known stays while Redis does not answer.
  readDatabase = () => Promise.reject(new Error("no answer"));
  await watch.start(watching.signal);
  expect(watch.problem).toMatch(/The queue has fed the database another/);
});
