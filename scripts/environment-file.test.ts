import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { writeEnvironmentFile } from "./environment-file.ts";

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "environment-file-"));
});

afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
});

test("Node reads back exactly what was written, whatever a password holds", () => {
  const file = join(dir, "env");
  const variables = { A: "postgres://u:p#%20$x\"'@h/d?a=b c", B: "it's", C: "{booking-events}", D: "" };
  writeEnvironmentFile(file, variables);
  expect(parseEnv(readFileSync(file, "utf8"))).toEqual(variables);
});

test("only its owner may read it, also when it was there before", () => {
  const file = join(dir, "env");
  writeFileSync(file, "", { mode: 0o644 });
  writeEnvironmentFile(file, { A: "secret" });
  expect(statSync(file).mode & 0o777).toBe(0o600);
});
