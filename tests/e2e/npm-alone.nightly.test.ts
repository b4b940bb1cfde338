import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { chmod, cp, mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort, waitFor } from "@booking-events/harness";
import { startRedis } from "@booking-events/scripts/services";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const leftOut = new Set([".git", ".data", ".turbo", "node_modules", "dist", "partners.json"]);
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
/** Long enough to install or build on a busy machine. */
const commandTimeoutMs = 240_000;

/** A copy of the repository, not installed and not built. Each test continues with what the previous ones left. */
let clone: string;

beforeAll(async () => {
  clone = await mkdtemp(join(tmpdir(), "booking-events-npm-alone-"));
  // PostgreSQL's own user must reach its data.
  await chmod(clone, 0o755);
  await cp(root, clone, { recursive: true, filter: (path) => !leftOut.has(basename(path)) });
});

afterAll(() => rm(clone, { recursive: true, force: true }));

test("dev and ops run without pnpm and without a build, and the install warns of nothing", {
  timeout: 2 * commandTimeoutMs,
}, async () => {
  const [port, adminPort] = [await freePort(), await freePort({ following: 4 })];
  const dev = start("dev", [], { PORT: String(port), ADMIN_PORT: String(adminPort) });
  const isReady = () => /Ready after .*Logs are in/s.test(dev.output());
  await Promise.race([waitFor(isReady, { timeoutMs: commandTimeoutMs }), dev.untilExit()]);
  expect(dev.output()).toMatch(/Ready after .*Logs are in/s);
  expect(dev.output()).toContain("Installing pnpm");
  expect(dev.output()).not.toMatch(/EBADENGINE|Unsupported engine/);

  const ops = start("ops", ["partners", "list"]);
  expect(await ops.untilExit()).toBe(0);
  expect(ops.output()).toContain("Demo partner");

  dev.stop();
  expect(await dev.untilExit()).toBe(0);
  expect(existsSync(join(clone, "apps/ops/dist"))).toBe(false);
});

test.each([
  ["build", [], " successful,"],
  ["verify", ["packages/bookings"], " passed, 0 failed"],
  ["format", [], "Checked"],
  ["json-schema", [], "Formatted"],
  ["fuzz", ["--connections", "10"], "Passed."],
  ["chaos", ["--help"], "npm run chaos --"],
  ["bench", ["--help"], "npm run bench --"],
  ["chaos", ["--version"], version],
  ["bench", ["--version"], version],
  ["fuzz", ["--version"], version],
  ["mutate", ["--help"], "stryker run"],
  ["test:nightly", ["--help"], "vitest"],
  ["check:dependencies", ["--help"], "pnpm audit"],
])("npm run %s needs no pnpm", { timeout: commandTimeoutMs }, async (name, args, shows) => {
  const command = start(name, args);
  const exitCode = await command.untilExit();
  expect(command.output()).toContain(shows);
  expect(exitCode).toBe(0);
});

describe("npm start refuses, with what to do,", { timeout: commandTimeoutMs }, () => {
  async function untilRefused(environment: Record<string, string>): Promise<string> {
    const command = start("start", [], environment);
    expect(await command.untilExit()).toBe(1);
    return command.output();
  }

  test("a URL without a scheme", async () => {
    const output = await untilRefused({ REDIS_URL: "localhost:6379" });
    expect(output).toMatch(/REDIS_URL is not a URL such as redis:\/\//);
  });

  test("a Redis that could lose events", async () => {
    const redis = await startRedis({ dir: join(clone, "forgetful-redis") });
    onTestFinished(() => redis.stop());
    const admin = new Redis(redis.url);
    await admin.config("SET", "appendfsync", "everysec");
    admin.disconnect();
    const output = await untilRefused({ REDIS_URL: redis.url });
    expect(output).toMatch(/✗ Redis or PostgreSQL could lose events:\n.*appendfsync always/);
  });

  test("a port in use", async () => {
    const taken = createServer().listen(0, "0.0.0.0");
    await once(taken, "listening");
    onTestFinished(() => void taken.close());
    const { port } = taken.address() as { port: number };
    const output = await untilRefused({ PORT: String(port) });
    expect(output).toContain(`${port}`);
    expect(output).toMatch(/What to do: .*PORT/s);
  });
});

function start(name: string, args: string[], environment: Record<string, string> = {}) {
  const child = spawn("npm", ["run", name, "--", ...args], {
    cwd: clone,
    env: { PATH: pathWithoutPnpm(), HOME: process.env["HOME"], ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text));
  const exited = once(child, "close");
  return {
    output: () => output,
    stop: () => child.kill("SIGINT"),
    untilExit: async () => (await exited)[0] as number | null,
  };
}

/** Only the machine's own programs: without the folders of an install or a package manager. */
function pathWithoutPnpm(): string {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  const isOurs = (folder: string) => folder.includes("node_modules");
  return folders.filter((folder) => !isOurs(folder) && !existsSync(join(folder, "pnpm"))).join(delimiter);
}
