import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { waitFor } from "@booking-events/harness";
import {
  compileStrictly,
  createProject,
  downloadTimeoutMs,
  installNode,
  pack,
} from "@booking-events/harness/installed-package";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { insertContents } from "@booking-events/store/testing/insert-content";
import { publint } from "publint";
import { afterAll, beforeAll, expect, test } from "vitest";

const run = promisify(execFile);
const { pool, url } = useTestDatabase();
const schemaFolder = join(import.meta.dirname, "../schema");

let folder: string;
let tarball: string;
/** A project that has installed the tarballs of this package and of the contract, and nothing else of ours. */
let project: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "booking-events-feed-"));
  tarball = await pack(import.meta.dirname, folder);
  project = join(folder, "project");
  await createProject(project, [tarball, await pack(schemaFolder, folder)]);
  const [code = ""] = [...(await readme()).matchAll(/```ts\n([\s\S]*?)```/g)].map(([, block]) => block);
  await writeFile(join(project, "main.ts"), code);
}, downloadTimeoutMs);

afterAll(() => rm(folder, { recursive: true }));

function readme(): Promise<string> {
  return readFile(join(import.meta.dirname, "README.md"), "utf8");
}

test("the tarball has code, types and a guide, and depends on nothing that is not published", async () => {
  const { stdout } = await run("tar", ["--list", "--file", tarball]);
  expect(stdout.trim().split("\n").toSorted()).toEqual(
    ["LICENSE", "README.md", "dist/index.d.ts", "dist/index.js", "dist/index.js.map", "package.json"].map(
      (name) => `package/${name}`,
    ),
  );
  const manifest = JSON.parse(await readFile(join(project, "node_modules/@booking-events/feed/package.json"), "utf8"));
  expect(Object.keys(manifest.dependencies)).toEqual(["@booking-events/schema", "@types/pg", "pg"]);
  expect(manifest).not.toHaveProperty("private");
});

test("publint finds nothing", async () => {
  const bytes = await readFile(tarball);
  const { messages } = await publint({ strict: true, pack: { tarball: new Uint8Array(bytes).buffer } });
  expect(messages).toEqual([]);
});

test("the example of the guide compiles strictly, with all declarations", async () => {
  await compileStrictly(project, { types: "node", lib: "es2024" });
});

test.each(["20.20.2", "22.23.3", process.versions.node])(
  "the example of the guide runs on Node %s",
  {
    timeout: downloadTimeoutMs,
  },
  async (version) => {
    const node =
      version === process.versions.node ? process.execPath : await installNode(join(folder, version), version);
    await compileToJavaScript();
    await pool.query("drop table if exists arrivals; truncate feed_readers cascade");
    const [table = ""] = [...(await readme()).matchAll(/```sql\n([\s\S]*?)```/g)].map(([, block]) => block);
    await pool.query(table);
    const reference = `TRIP-${version}`;
    await insertContents(pool, [
      { reference, payload: { consumerTripArrivalDate: "2030-06-14" }, defaultCountry: null },
    ]);
    const child = spawn(node, ["main.js"], { cwd: project, env: { ...process.env, DATABASE_URL: url } });
    try {
      await waitFor(async () => {
        const { rows } = await pool.query("select arrival_date from arrivals where reference = $1", [reference]);
        expect(rows).toEqual([{ arrival_date: "2030-06-14" }]);
      });
    } finally {
      await stop(child);
    }
  },
);

/** Without what newer versions of Node know, as the user's own compiler would. */
async function compileToJavaScript(): Promise<void> {
  const { transform } = await import("rolldown/utils");
  const { code } = await transform("main.ts", await readFile(join(project, "main.ts"), "utf8"), {});
  await writeFile(join(project, "main.js"), code);
}

async function stop(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  await ended;
}
