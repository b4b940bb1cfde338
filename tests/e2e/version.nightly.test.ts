import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { builtApps, compileCache } from "@booking-events/harness/app-process";
import { expect, test } from "vitest";

const { version } = JSON.parse(readFileSync("package.json", "utf8"));

test.each(Object.values(builtApps))("%s --version works from any folder, and without settings", async (file) => {
  const options = { cwd: tmpdir(), env: compileCache };
  const printed = await promisify(execFile)(process.execPath, [resolve(file), "--version"], options);
  expect(printed).toEqual({ stdout: `${version}\n`, stderr: "" });
});
