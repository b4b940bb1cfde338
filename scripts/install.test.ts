import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { findOrInstallTool, findRedis, redisMissing } from "./install.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "find-redis-"));
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

test.each([
  ["redis-server", "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64", "Redis 7.0.15"],
  ["redis-server", "Redis server v=6.2.0 sha=00000000:0", "Redis 6.2.0"],
  ["valkey-server", "Valkey server v=8.1.1 sha=00000000:0", "Valkey 8.1.1"],
])("%s that says '%s' is found", (name, says, version) => {
  program(name, says);
  expect(findRedis([join(folder, "missing"), folder].join(delimiter))).toEqual({ file: name, version });
});

test("a Redis that is too old is passed over for a Valkey that is not", () => {
  program("redis-server", "Redis server v=5.0.14 sha=00000000:0");
  expect(findRedis(folder)).toBeUndefined();
  program("valkey-server", "Valkey server v=7.2.5 sha=00000000:0");
  expect(findRedis(folder)?.version).toBe("Valkey 7.2.5");
});

test("without Redis, the error says how to install one, or how to use another machine's", () => {
  expect(redisMissing().advice).toMatch(/apt-get install -y redis-server.*brew install redis.*REDIS_URL=/s);
});

test("a tool that this machine can't have is done without, but not in CI", async () => {
  vi.stubEnv("PATH", folder);
  const say = () => {};
  expect(await findOrInstallTool("prometheus", { say, isCi: false })).toBeUndefined();
  await expect(findOrInstallTool("prometheus", { say, isCi: true })).rejects.toThrow("no prometheus");
  program("prometheus", "prometheus, version 2.42.0");
  program("promtool", "promtool, version 2.42.0");
  expect(await findOrInstallTool("prometheus", { say, isCi: true })).toBe("prometheus");
});

function program(name: string, says: string): void {
  writeFileSync(join(folder, name), `#!/bin/sh\necho '${says}'\n`);
  chmodSync(join(folder, name), 0o755);
}
