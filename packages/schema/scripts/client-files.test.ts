import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { buildClientFiles } from "./client-files.ts";

const folder = new URL("../../../docs/clients/", import.meta.url);

test("the committed client for JavaScript is up to date; otherwise run `npm run json-schema`", async () => {
  for (const [name, text] of Object.entries(await buildClientFiles()))
    expect(readFileSync(new URL(name, folder), "utf8")).toBe(text);
});

test("the copied client for JavaScript refers to no package of ours", async () => {
  expect(Object.values(await buildClientFiles()).join()).not.toContain("@booking-events/");
});
