import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../../..");

/**
 * They are published for Node 20, and tried there every night. Rooms that they have parts of are compiled too, and may use
 * newer APIs elsewhere.
 */
test("this package and the contract's use nothing that came after Node 20", () => {
  const compiler = join(root, "node_modules/.bin/tsc");
  const { stdout, status } = spawnSync(compiler, ["-p", "tsconfig.node-20.json"], { cwd: root, encoding: "utf8" });
  expect(status).not.toBeNull();
  expect(stdout.split("\n").filter((line) => /^packages\/(feed|schema)\//.test(line))).toEqual([]);
}, 60_000);
