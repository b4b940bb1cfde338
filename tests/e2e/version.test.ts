import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { waitFor } from "@booking-events/harness";
import { expect, test } from "vitest";
import { prepareSurroundings } from "./surroundings.ts";

const surroundings = prepareSurroundings("a-secret-of-the-test-with-enough-characters");
const root = join(import.meta.dirname, "../..");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

test.each([
  ...["apps/ingest/dist/main.js", "apps/worker/dist/main.js", "apps/ops/dist/main.js"],
  ...["tests/bench/main.ts", "tests/chaos/main.ts", "tests/fuzz/main.ts"],
])("%s --version prints the version, wherever it is called from, and needs no settings", async (program) => {
  const fromSource = program.endsWith(".ts") ? ["--conditions=@booking-events/source"] : [];
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    [...fromSource, join(root, program), "--version"],
    {
      cwd: tmpdir(),
      env: {},
    },
  );
  expect({ stdout, stderr }).toEqual({ stdout: `${version}\n`, stderr: "" });
});

test.each(["ingest", "worker"] as const)("the log of %s says which version is ready", async (name) => {
  const app = await surroundings().start(name);
  const ready = () => app.output().match(/^\{.*"msg":"ready\b.*$/m)?.[0];
  await waitFor(() => ready() !== undefined);
  expect(JSON.parse(ready() ?? "")).toMatchObject({ version });
});
