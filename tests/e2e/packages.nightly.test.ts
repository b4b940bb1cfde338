import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { waitFor } from "@booking-events/harness";
import { compileStrictly, createProject, downloadTimeoutMs } from "@booking-events/harness/installed-package";
import { startScriptedReceiver } from "@booking-events/harness/scripted-receiver";
import { packPackage, published } from "@booking-events/scripts/pack-package";
import { insertContents } from "@booking-events/store/testing/insert-content";
import { publint } from "publint";
import { rolldown } from "rolldown";
import { transform } from "rolldown/utils";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { shareSurroundings } from "./surroundings.ts";

/** The tarballs that a registry gets, installed into an empty project with nothing else of ours. */

const run = promisify(execFile);
const secret = "a-secret-of-the-packages-0123456789abcdef";
const shared = shareSurroundings(secret);
const packages = join(import.meta.dirname, "../../packages");
const eventId = "01a1fafe-d690-7608-9309-bff7f221cbc9";

/** Those that the packages name. They are npm packages, too. */
const node = `node-${process.platform}-${process.arch}`;
const runtimes = [
  // The oldest that can import JSON as the program below does.
  { name: "Node 20", install: `${node}@20.10.0`, program: `${node}/bin/node`, args: [] },
  { name: "Node 22", install: `${node}@22.23.3`, program: `${node}/bin/node`, args: [] },
  { name: "Node 24", install: `${node}@24.21.0`, program: `${node}/bin/node`, args: [] },
  {
    ...{ name: "Deno", install: "deno@2.9.6", program: ".bin/deno" },
    args: ["run", "--node-modules-dir=manual", "--allow-net", "--allow-env", "--allow-read", "--allow-sys"],
  },
  { name: "Bun", install: "bun@1.4.5", program: ".bin/bun", args: [] },
];

/** Uses every entry of the contract. */
const sendEvents = `
import fc from "fast-check";
import { bookingFields, validatePayload } from "@booking-events/schema";
import { BookingEventsError, createBookingEventsClient } from "@booking-events/schema/client";
import full from "@booking-events/schema/examples/full-booking.json" with { type: "json" };
import jsonSchema from "@booking-events/schema/json-schema/booking-input.json" with { type: "json" };
import { readCountry } from "@booking-events/schema/normalise";
import openApi from "@booking-events/schema/openapi.json" with { type: "json" };
import { bookingInput, examples } from "@booking-events/schema/testing";

declare const process: { env: Record<string, string | undefined> };
const baseUrl = process.env["RECEIVER_URL"] ?? "";
const client = createBookingEventsClient({ baseUrl, secret: "s", validate: validatePayload });
const accepted = await client.create(full.payload);
const refused = await client.create({}).catch((error) => (error instanceof BookingEventsError ? error.code : "other"));
fc.assert(fc.property(bookingInput(), (booking) => validatePayload("create", booking).success), { numRuns: 10 });
const counts = [examples.length > 40, Object.keys(jsonSchema.properties).length >= bookingFields.length];
console.log(accepted.eventId, refused, ...counts, openApi.openapi, readCountry("Deutschland"));
`;

let folder: string;
/** A project that has installed the tarballs. */
let project: string;
const tarballs = new Map<string, string>();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "booking-events-packages-"));
  for (const name of published) tarballs.set(name, await packPackage(name, folder));
  const { devDependencies } = JSON.parse(await readFile(join(packages, "schema/package.json"), "utf8"));
  project = join(folder, "project");
  await createProject(project, [...tarballs.values(), `fast-check@${devDependencies["fast-check"]}`]);
  await writeProgram("send-events", sendEvents);
  await writeProgram("follow-bookings", await readExample("feed", "ts"));
}, downloadTimeoutMs);

afterAll(() => rm(folder, { recursive: true }));

/** As TypeScript, and as what the user's own compiler makes of it. */
async function writeProgram(name: string, code: string): Promise<void> {
  await writeFile(join(project, `${name}.ts`), code);
  await writeFile(join(project, `${name}.js`), (await transform(`${name}.ts`, code, {})).code);
}

/** @returns the first block of code of the guide */
async function readExample(name: string, language: string): Promise<string> {
  const readme = await readFile(join(packages, name, "README.md"), "utf8");
  const [, code = ""] = new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``).exec(readme) ?? [];
  return code;
}

describe.each(published)("the tarball of %s", (name) => {
  const tarball = () => tarballs.get(name) ?? "";

  test("has code, types, a guide and the licence, and no tests or sources", async () => {
    const { stdout } = await run("tar", ["--list", "--file", tarball()]);
    const files = stdout.trim().split("\n");

    for (const file of ["LICENSE", "README.md", "dist/index.js", "dist/index.d.ts"])
      expect(files).toContain(`package/${file}`);
    if (name === "schema") expect(files).toContain("package/LICENSE-CLDR");
    expect(files.filter((file) => /\.test\b|\/src\/|\/scripts\//.test(file))).toEqual([]);
  });

  test("is published with its provenance, and depends on nothing that is not published", async () => {
    const manifest = JSON.parse(
      await readFile(join(project, "node_modules/@booking-events", name, "package.json"), "utf8"),
    );

    const ours = Object.keys(manifest.dependencies).filter((dependency) => dependency.startsWith("@booking-events/"));
    expect(ours).toEqual(name === "schema" ? [] : ["@booking-events/schema"]);
    expect(manifest).not.toHaveProperty("private");
    expect(manifest.publishConfig).toEqual({ access: "public", provenance: true });
  });

  test("has nothing that publint finds", async () => {
    const bytes = await readFile(tarball());

    const { messages } = await publint({ strict: true, pack: { tarball: new Uint8Array(bytes).buffer } });

    expect(messages).toEqual([]);
  });

  test("has nothing that arethetypeswrong finds", { timeout: downloadTimeoutMs }, async () => {
    // Not a dependency, because it brings a TypeScript of its own. It exits with 1 if it finds a problem.
    const cli = ["dlx", "@arethetypeswrong/cli@0.18.5", tarball(), "--profile", "esm-only", "--no-color"];
    const { stdout } = await run("pnpm", cli);

    const { publishConfig } = JSON.parse(await readFile(join(packages, name, "package.json"), "utf8"));
    const entries = Object.values(publishConfig.exports).filter((entry) => typeof entry === "object");
    // The colon: of several entries.
    expect(stdout.match(/node16 \(from ESM\)(:| │) 🟢 \(ESM\)/gu)).toHaveLength(entries.length);
  });
});

test("strict projects compile, also the packages' own declarations", async () => {
  await compileStrictly(project, "send-events.ts", { types: "", lib: "es2024,dom" });
  await compileStrictly(project, "follow-bookings.ts", { types: "node", lib: "es2024" });
});

test.each(["browser", "neutral"] as const)("the contract is bundled for the platform %s", async (platform) => {
  const build = await rolldown({
    ...{ cwd: project, input: "send-events.ts", platform },
    onLog(_, log) {
      throw new Error(log.message);
    },
  });
  const { output } = await build.generate();
  await build.close();

  expect(output[0].code).toContain("validatePayload");
  expect(output[0].code).not.toMatch(/\bfrom "|\brequire\(|"node:/);
});

describe.each(runtimes)("on $name,", ({ name, install, program, args }) => {
  let command: string;

  beforeAll(async () => {
    const home = join(folder, name);
    await createProject(home, [install]);
    command = join(home, "node_modules", program);
  }, downloadTimeoutMs);

  const at = (environment: Record<string, string>) => ({ cwd: project, env: { ...process.env, ...environment } });

  test("every entry of the contract works", async () => {
    const receiver = await startScriptedReceiver([
      { status: 503, headers: { "Retry-After": "0" } },
      { status: 200, body: { success: true, eventId } },
    ]);
    onTestFinished(() => receiver.close());

    const { stdout } = await run(command, [...args, "send-events.js"], at({ RECEIVER_URL: receiver.url }));

    expect(stdout).toBe(`${eventId} invalid-data true true 3.1.1 DE\n`);
  });

  test("the feed's example follows bookings", async () => {
    await shared.pool.query("drop table if exists arrivals; truncate feed_readers cascade");
    await shared.pool.query(await readExample("feed", "sql"));
    const booking = { reference: "TRIP-1", payload: { consumerTripArrivalDate: "2030-06-14" } };
    await insertContents(shared.pool, [booking]);
    const { DATABASE_URL = "" } = shared.environment;
    const child = spawn(command, [...args, "follow-bookings.js"], { ...at({ DATABASE_URL }), stdio: "inherit" });
    onTestFinished(() => stop(child));

    await waitFor(async () => {
      const { rows } = await shared.pool.query("select reference, arrival_date from arrivals");
      expect(rows).toEqual([{ reference: "TRIP-1", arrival_date: "2030-06-14" }]);
    });
  });

  // It writes numbers of any length, which Node 20 cannot.
  test.skipIf(name === "Node 20")("conformance finds that this service keeps to the contract", async () => {
    const [ingest, lookup] = [await shared.running("ingest"), await shared.running("lookup")];
    await shared.running("worker");
    const conformance = join(project, "node_modules/@booking-events/conformance/dist/main.js");
    const urls = ["--url", ingest.url, "--lookup-url", lookup.url];

    const { stdout } = await run(
      command,
      [...args, conformance, "receiver", ...urls],
      at({ BOOKING_EVENTS_SECRET: secret }),
    );

    expect(stdout).toMatch(/: \d{3} passed, 0 failed\.\n$/);
  });
});

async function stop(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  await ended;
}
