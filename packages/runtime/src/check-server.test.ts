import { expect, test } from "vitest";
import { createServerCheck } from "./check-server.ts";

test("a database that does not answer is asked once, and every check gets a result", async () => {
  const { promise: frozen, resolve: thaw } = Promise.withResolvers<void>();
  let questions = 0;
  const check = createServerCheck(() => {
    questions += 1;
    return frozen;
  }, String);
  expect(await Promise.all([check(), check(), check()])).toEqual(Array(3).fill("no answer"));
  expect(questions).toBe(1);
  thaw();
  expect(await check()).toBe(null);
});

test("a refusal is reported, and the next check asks again", async () => {
  const answers = [() => Promise.reject(new Error("refused")), () => Promise.resolve()];
  const check = createServerCheck(() => answers.shift()?.() ?? Promise.resolve(), String);
  expect(await check()).toBe("Error: refused");
  expect(await check()).toBe(null);
});
