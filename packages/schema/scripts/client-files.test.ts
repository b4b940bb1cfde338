import { globSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { expect, test } from "vitest";
import { version } from "../src/client/version.ts";
import { buildClientFiles } from "./client-files.ts";

const folder = new URL("../../../docs/clients/", import.meta.url);
const { version: ofPackage } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));

test("the committed client for JavaScript is up to date; otherwise run `npm run json-schema`", async () => {
  for (const [name, text] of Object.entries(await buildClientFiles()))
    expect(readFileSync(new URL(name, folder), "utf8")).toBe(text);
});

test("the copied client for JavaScript refers to no package of ours", async () => {
  expect(Object.values(await buildClientFiles()).join()).not.toContain("@booking-events/");
});

test("every client states the release that it belongs to", () => {
  expect(version).toBe(ofPackage);
  const files = globSync("*.{js,py,php,java,cs}", { cwd: folder }).map((file) => basename(file));
  expect(files).toHaveLength(5);
  for (const file of files) {
    const [, stated] = /\bversion\b[^=\n]* = ["']([^"']+)["']/i.exec(readFileSync(new URL(file, folder), "utf8")) ?? [];
    expect([file, stated]).toEqual([file, ofPackage]);
  }
});
