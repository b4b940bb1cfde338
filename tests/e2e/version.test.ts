import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

test.each(["ingest", "worker", "lookup", "webhooks", "ops"])(
  "%s --version works from any folder, and without settings",
  async (name) => {
    const program = join(root, `apps/${name}/dist/main.js`);
    const printed = await promisify(execFile)(process.execPath, [program, "--version"], { cwd: tmpdir(), env: {} });
    expect(printed).toEqual({ stdout: `${version}\n`, stderr: "" });
  },
);
