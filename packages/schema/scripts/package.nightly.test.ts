import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import {
  compileStrictly,
  createProject,
  downloadTimeoutMs,
  installNode,
  pack,
} from "@booking-events/harness/installed-package";
import { type ScriptedReceiver, startScriptedReceiver } from "@booking-events/harness/scripted-receiver";
import { publint } from "publint";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const run = promisify(execFile);
const packageFolder = fileURLToPath(new URL("../", import.meta.url));
const manifest = JSON.parse(await readFile(join(packageFolder, "package.json"), "utf8"));

const eventId = "01a1fafe-d690-7608-9309-bff7f221cbc9";
const deno = "deno@2.9.6";
const node20 = "20.20.2";

let folder: string;
let tarball: string;
/** A project that has installed the tarball. */
let project: string;
let receiver: ScriptedReceiver;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "booking-events-package-"));
  tarball = await pack(packageFolder, folder);
  receiver = await startScriptedReceiver([
    { status: 503, headers: { "Retry-After": "0" } },
    { status: 200, body: { success: true, eventId } },
  ]);
  project = join(folder, "project");
  await createProject(project, [tarball, `fast-check@${manifest.devDependencies["fast-check"]}`]);
  await writeFile(join(project, "main.ts"), program(receiver.url));
}, downloadTimeoutMs);

afterAll(async () => {
  await receiver.close();
  await rm(folder, { recursive: true });
});

/** Uses every entry. It is also valid JavaScript, for Node 20. */
function program(url: string): string {
  return `
import fc from "fast-check";
import { bookingFields, validatePayload } from "@booking-events/schema";
import { BookingEventsError, createBookingEventsClient } from "@booking-events/schema/client";
import full from "@booking-events/schema/examples/full-booking.json" with { type: "json" };
import jsonSchema from "@booking-events/schema/json-schema/booking-input.json" with { type: "json" };
import openApi from "@booking-events/schema/openapi.json" with { type: "json" };
import { bookingInput, examples } from "@booking-events/schema/testing";

const client = createBookingEventsClient({ baseUrl: ${JSON.stringify(url)}, secret: "s", validate: validatePayload });
const accepted = await client.create(full.payload);
const refused = await client.create({}).catch((error) => (error instanceof BookingEventsError ? error.code : "other"));
fc.assert(fc.property(bookingInput(), (booking) => validatePayload("create", booking).success), { numRuns: 10 });
const counts = [examples.length > 40, Object.keys(jsonSchema.properties).length >= bookingFields.length];
console.log(accepted.eventId, refused, ...counts, openApi.openapi);
`;
}

const printed = `${eventId} invalid-data true true 3.1.1\n`;

test("the tarball has the files that the package needs, and no tests", async () => {
  const { stdout } = await run("tar", ["--list", "--file", tarball]);
  const files = stdout.trim().split("\n");

  for (const name of ["LICENSE", "README.md", "LICENSE-CLDR", "openapi.json", "dist/client/index.d.ts"]) {
    expect(files).toContain(`package/${name}`);
  }
  expect(files.filter((name) => /\.test\b|\/src\/|\/scripts\//.test(name))).toEqual([]);
});

test("publint finds nothing", async () => {
  const bytes = await readFile(tarball);

  const { messages } = await publint({ strict: true, pack: { tarball: new Uint8Array(bytes).buffer } });

  expect(messages).toEqual([]);
});

test("arethetypeswrong finds nothing", { timeout: downloadTimeoutMs }, async () => {
  // Not a dependency, because it brings a TypeScript of its own. It exits with 1 if it finds a problem.
  const cli = ["dlx", "@arethetypeswrong/cli@0.18.5", tarball, "--profile", "esm-only", "--no-color"];
  const { stdout } = await run("pnpm", cli);

  expect(stdout.match(/node16 \(from ESM\): 🟢 \(ESM\)/gu)).toHaveLength(
    Object.values(manifest.publishConfig.exports).filter((entry) => typeof entry === "object").length,
  );
});

test("a strict project compiles, also the package's own declarations", async () => {
  await compileStrictly(project, { types: "", lib: "es2024,dom" });
});

describe("the program runs in", () => {
  test("Node 24", async () => {
    const { stdout } = await run(process.execPath, ["main.ts"], { cwd: project });

    expect(stdout).toBe(printed);
  });

  test("Node 20", { timeout: downloadTimeoutMs }, async () => {
    await writeFile(join(project, "main.js"), program(receiver.url));
    const node = await installNode(join(folder, "node-20"), node20);
    expect((await run(node, ["--version"])).stdout).toMatch(/^v20\./);

    const { stdout } = await run(node, ["main.js"], { cwd: project });

    expect(stdout).toBe(printed);
  });

  test("Deno", { timeout: downloadTimeoutMs }, async () => {
    await createProject(join(folder, "deno"), [deno]);
    const program = join(folder, "deno/node_modules/.bin/deno");

    const { stdout } = await run(
      program,
      ["run", "--node-modules-dir=manual", "--allow-net", "--allow-env", "main.ts"],
      {
        cwd: project,
      },
    );

    expect(stdout).toBe(printed);
  });
});

test.each(["browser", "neutral"] as const)("the program is bundled for the platform %s", async (platform) => {
  const build = await rolldown({
    ...{ cwd: project, input: "main.ts", platform },
    onLog(_, log) {
      throw new Error(log.message);
    },
  });
  const { output } = await build.generate();
  await build.close();

  expect(output[0].code).toContain("validatePayload");
  expect(output[0].code).not.toMatch(/\bfrom "|\brequire\(|"node:/);
});
