import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { buildApiReport } from "./api-report.ts";
import { buildExamplesModule } from "./testing-examples.ts";

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), "utf8");

test("the API report is up to date; otherwise run `npm run json-schema`", () => {
  expect(read("api-report.txt")).toBe(buildApiReport());
});

test("the API report has what programs use", () => {
  for (const declared of ["function validatePayload(", "interface ClientOptions", "function bookingInput()"]) {
    expect(read("api-report.txt")).toContain(declared);
  }
});

test("the module of examples is up to date; otherwise run `npm run json-schema`", () => {
  expect(read("src/testing/examples.ts")).toBe(buildExamplesModule());
});
