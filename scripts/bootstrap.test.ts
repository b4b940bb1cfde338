import { execFile, spawn } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

/** A clone with an npx and a pnpm that only note their calls and create what a real install would. */
let clone: string;

beforeEach(() => {
  clone = mkdtempSync(join(tmpdir(), "bootstrap-"));
  write("package.json", JSON.stringify({ packageManager: "pnpm@1.2.3", devDependencies: { a: "1.0.0" } }));
  write("pnpm-lock.yaml", "lockfileVersion: '9.0'\n");
  write("pnpm-workspace.yaml", "packages:\n  - apps/*\n");
  write("scripts/show.ts", "console.log(JSON.stringify({ args: process.argv.slice(2), env: process.env }));");
  write("scripts/exit.ts", "process.exit(7);");
  copyFileSync(join(import.meta.dirname, "bootstrap.mjs"), join(clone, "scripts/bootstrap.mjs"));
  writeProgram("tools/npx", `echo "npx $*" >> '${clone}/calls'; echo '${clone}/cache/pnpm'`);
  writeProgram("tools/tool", `pnpm "$1" > '${clone}/tool-output' && cat '${clone}/tool-output' && exit 5`);
  writeProgram(
    "cache/pnpm",
    `echo "pnpm $1" >> '${clone}/calls'
    mkdir -p node_modules/.bin
    [ -z "$FAIL_INSTALL" ] || exit 1
    ln -sf '${process.execPath}' node_modules/.bin/node
    ln -sf '${clone}/tools/tool' node_modules/.bin/tool
    echo 'a line of the install'`,
  );
});

afterEach(() => {
  rmSync(clone, { recursive: true, force: true });
});

test("a fresh clone is installed with the pnpm that package.json pins, and a second start installs nothing", async () => {
  expect((await bootstrap("scripts/show.ts")).code).toBe(0);
  expect(calls()).toEqual(["npx -y -p pnpm@1.2.3 -c command -v pnpm", "pnpm install"]);
  expect((await bootstrap("scripts/show.ts")).code).toBe(0);
  expect(calls()).toEqual([]);
});

// Root may write everywhere.
test.skipIf(process.getuid?.() === 0)(
  "a folder that this user may not write to is refused with one sentence, before anything is fetched",
  async () => {
    chmodSync(clone, 0o555);
    const { stderr } = await bootstrap("scripts/show.ts");
    chmodSync(clone, 0o755);
    expect(stderr).toMatch(/^✗ This user may not write to .* \(EACCES\)/m);
    expect(stderr).not.toMatch(/^ {4}at |Installing/m);
    expect(calls()).toEqual([]);
  },
);

test.each([
  ["the lockfile changed", () => write("pnpm-lock.yaml", "lockfileVersion: '9.1'\n")],
  ["node_modules was deleted", () => remove("node_modules")],
  ["npm's cache was cleaned", () => moveCache()],
])("it is installed again when %s", async (_why, change) => {
  await bootstrap("scripts/show.ts");
  calls();
  change();
  await bootstrap("scripts/show.ts");
  expect(calls()).toContain("npx -y -p pnpm@1.2.3 -c command -v pnpm");
});

test("an install that failed says what to do, and is repeated at the next start", async () => {
  const failed = await bootstrap("scripts/show.ts", [], { FAIL_INSTALL: "1" });
  expect(failed.code).toBe(1);
  expect(failed.stderr).toContain("pnpm could not install the packages");
  calls();
  expect((await bootstrap("scripts/show.ts")).code).toBe(0);
  expect(calls()).toContain("pnpm install");
});

test("an install that failed over an earlier complete one is repeated, too", async () => {
  await bootstrap("scripts/show.ts");
  write("pnpm-lock.yaml", "lockfileVersion: '9.1'\n");
  await bootstrap("scripts/show.ts", [], { FAIL_INSTALL: "1" });
  write("pnpm-lock.yaml", "lockfileVersion: '9.0'\n");
  calls();
  await bootstrap("scripts/show.ts");
  expect(calls()).toContain("pnpm install");
});

test("when npm is killed, the program is asked to stop, and only once", async () => {
  write(
    "scripts/count.ts",
    `import { renameSync, writeFileSync } from "node:fs";
    let count = 0;
    process.on("SIGTERM", () => {
      count += 1;
      // Two more looks at npm.
      setTimeout(() => {
        writeFileSync("count.new", String(count));
        renameSync("count.new", "count");
        process.exit();
      }, 1_200);
    });
    writeFileSync("up", "");
    setInterval(() => {}, 1_000);`,
  );
  await bootstrap("scripts/show.ts");
  const command = `'${process.execPath}' scripts/bootstrap.mjs node scripts/count.ts & wait`;
  const env = { PATH: process.env["PATH"], HOME: clone, npm_lifecycle_event: "start" };
  const npm = spawn("sh", ["-c", command], { cwd: clone, env, stdio: "ignore" });
  await vi.waitFor(() => expect(existsSync(join(clone, "up"))).toBe(true), { timeout: 20_000 });
  npm.kill("SIGKILL");
  await vi.waitFor(() => expect(existsSync(join(clone, "count"))).toBe(true), { timeout: 20_000 });
  expect(readFileSync(join(clone, "count"), "utf8")).toBe("1");
});

test("arguments and exit code pass through", async () => {
  const { stdout } = await bootstrap("scripts/show.ts", ["packages/schema", "-t", "two words"]);
  expect(shown(stdout).args).toEqual(["packages/schema", "-t", "two words"]);
  expect((await bootstrap("scripts/exit.ts")).code).toBe(7);
});

test("any program of the packages runs, and finds pnpm on a machine that has none", async () => {
  expect(await run(["tool", "run"])).toMatchObject({ code: 5, stdout: "a line of the install\n" });
  expect(calls().slice(1)).toEqual(["pnpm install", "pnpm run"]);
});

test("standard output has only the program's output, even if packages are installed first", async () => {
  const { stdout, stderr } = await bootstrap("scripts/show.ts");
  expect(stdout.trim().split("\n")).toHaveLength(1);
  expect(stderr).toContain("a line of the install");
});

test("of npm's settings, only those about where packages come from are passed on, also to pnpm", async () => {
  const { stdout } = await bootstrap("scripts/show.ts", [], {
    npm_config_registry: "http://localhost:1/",
    npm_config_omit: "dev",
    npm_config_prefix: "/nowhere",
    npm_config_user_agent: "npm/11",
    npm_lifecycle_event: "",
    NODE_ENV: "production",
  });
  const { env } = shown(stdout);
  expect(env).toMatchObject({
    npm_config_registry: "http://localhost:1/",
    pnpm_config_registry: "http://localhost:1/",
  });
  expect(Object.keys(env)).not.toEqual(
    expect.arrayContaining([expect.stringMatching(/^npm_config_(omit|prefix|user_agent)$|^NODE_ENV$/)]),
  );
});

interface Ending {
  code: number;
  stdout: string;
  stderr: string;
}

function bootstrap(script: string, args: string[] = [], env: Record<string, string> = {}): Promise<Ending> {
  return run(["node", script, ...args], env);
}

function run(command: string[], env: Record<string, string> = {}): Promise<Ending> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [join(clone, "scripts/bootstrap.mjs"), ...command],
      { env: { PATH: [join(clone, "tools"), "/usr/bin", "/bin"].join(delimiter), HOME: clone, ...env } },
      (error, stdout, stderr) => resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    );
  });
}

/** The calls of npx and pnpm since the last look. */
function calls(): string[] {
  const file = join(clone, "calls");
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").trim().split("\n");
  rmSync(file);
  return lines;
}

function shown(stdout: string): { args: string[]; env: Record<string, string> } {
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
}

function write(path: string, text: string): void {
  const file = join(clone, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function writeProgram(path: string, script: string): void {
  write(path, `#!/bin/sh\n${script}\n`);
  chmodSync(join(clone, path), 0o755);
}

/** Removes pnpm. The next npx fetches it to another place. */
function moveCache(): void {
  renameSync(join(clone, "cache"), join(clone, "cache2"));
  writeProgram("tools/npx", `echo "npx $*" >> '${clone}/calls'; echo '${clone}/cache2/pnpm'`);
}

function remove(path: string): void {
  rmSync(join(clone, path), { recursive: true });
}
