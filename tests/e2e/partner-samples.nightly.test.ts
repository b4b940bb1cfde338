import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { waitFor } from "@booking-events/harness";
import { compileStrictly } from "@booking-events/harness/installed-package";
import {
  copyClients,
  type PartnerLanguage,
  partnerLanguages,
  requireLanguage,
} from "@booking-events/harness/partner-languages";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { shareSurroundings } from "./surroundings.ts";

/** What the pages for partners show, as it is shown, against the real processes. */
const secret = "a-secret-of-the-samples-0123456789abcdef";
const shared = shareSurroundings(secret);
const run = promisify(execFile);
const samples = join(import.meta.dirname, "../../docs/clients/samples");
const sampleEventId = "01a1fafe-d690-7608-9309-bff7f221cbc9";

const curl: PartnerLanguage = {
  ...{ name: "curl", sample: "curl.sh", needs: [{ program: "curl", args: ["--version"] }], packages: "curl" },
  ...{ adapter: "", proxy: () => ({}), command: async (_, file) => ["sh", file] },
};

/** Mono has no top-level statements, as the samples have for .NET. */
function asMonoProgram(sample: string): string {
  const lines = sample.split("\n");
  const using = lines.filter((line) => line.startsWith("using "));
  const statements = lines.filter((line) => !line.startsWith("using "));
  return `${using.join("\n")}
static class Sample
{
    static void Main() => RunAsync().GetAwaiter().GetResult();

    static async System.Threading.Tasks.Task RunAsync()
    {
        await System.Threading.Tasks.Task.Yield();
${statements.join("\n")}
    }
}
`;
}

/** With what a language has compiled. */
const folders = new Map<PartnerLanguage, string>();
afterAll(() => Promise.all([...folders.values()].map((folder) => rm(folder, { recursive: true }))));

async function perform(language: PartnerLanguage, name: string, eventId = sampleEventId): Promise<string> {
  const [ingest, lookup] = [await shared.running("ingest"), await shared.running("lookup")];
  const folder = await (folders.get(language) ?? copyClients());
  folders.set(language, folder);
  const text = (await readFile(join(samples, name, language.sample), "utf8")).replace(sampleEventId, eventId);
  const program = language.name === "C#" ? asMonoProgram(text) : text;
  await writeFile(join(folder, language.sample), program);
  const [command, ...args] = await language.command(folder, language.sample);
  const environment = { BOOKING_EVENTS_URL: ingest.url, LOOKUP_URL: lookup.url, BOOKING_EVENTS_SECRET: secret };
  const { stdout } = await run(command, args, { cwd: folder, env: { ...process.env, ...environment } });
  return stdout;
}

const everyLanguage = [curl, ...partnerLanguages];

test.each(readdirSync(samples))("%s has a sample in each language", (name) => {
  expect(readdirSync(join(samples, name)).sort()).toEqual(everyLanguage.map(({ sample }) => sample).sort());
  for (const { sample } of everyLanguage)
    expect(readFileSync(join(samples, name, sample), "utf8").split("\n").length).toBeLessThan(25);
});

describe.each(everyLanguage)("in $name, the samples", (language) => {
  test("send an event, ask, compare, change, delete, and load many", { timeout: 300_000 }, async () => {
    requireLanguage(language);
    await shared.running("worker");
    const { pool } = shared;
    await pool.query("truncate bookings, booking_events, booking_changes, dead_letters");
    const events = async () => {
      const { rows } = await pool.query(
        "select kind, idempotency_key, payload ->> 'consumerTripArrivalDate' as day from booking_events order by sequence",
      );
      return rows.map(({ kind, idempotency_key, day }) => [kind, idempotency_key, day]);
    };

    const { url } = await shared.running("ingest");
    await fetch(`${url}/booking-event/create/${secret}`, { method: "POST", body: '{"agentEmail":"none"}' });
    expect(await perform(language, "dry-run")).toMatch(/E\.164/);
    const eventId = /[\da-f]{8}-[\da-f-]{27}/.exec(await perform(language, "send"))?.[0];
    await waitFor(async () => expect(await events()).toEqual([["create", "TRIP-1/version-1", "2027-06-14"]]));
    expect(await perform(language, "receipt", eventId)).toMatch(/applied/);
    expect(await perform(language, "reconcile")).toMatch(language === curl ? /"same":1/ : /TRIP-1 different/);
    await perform(language, "update");
    await waitFor(async () => expect(await events()).toHaveLength(2));
    expect(await perform(language, "booking")).toMatch(language === curl ? /"state":"active"/ : /active true/i);
    await perform(language, "delete");
    await waitFor(async () => expect(await events()).toHaveLength(3));
    expect(await perform(language, "booking")).toMatch(/deleted/);
    expect(await events()).toEqual([
      ["create", "TRIP-1/version-1", "2027-06-14"],
      ["update", "TRIP-1/version-2", "2027-06-15"],
      ["delete", "TRIP-1/version-3", null],
    ]);
    expect(await perform(language, "batch")).toMatch(language === curl ? /"status":200.*"status":200/s : /200 TRIP-2/);
    await waitFor(async () => expect(await perform(language, "activity")).toMatch(/agentEmail.*malformed/s));
  });
});

test("the samples in TypeScript compile strictly, with the types that partners copy", async () => {
  const folder = await copyClients();
  onTestFinished(() => rm(folder, { recursive: true }));
  const main = readdirSync(samples)
    .map((name) => `import "./samples/${name}/typescript.ts";\n`)
    .join("");
  for (const name of readdirSync(samples)) {
    const sample = join(folder, "samples", name, "typescript.ts");
    await writeFile(sample, (await readFile(sample, "utf8")).replace("./booking-events.js", "../../booking-events.js"));
  }
  await writeFile(join(folder, "main.ts"), main);
  await writeFile(join(folder, "package.json"), '{"type":"module"}');
  await writeFile(join(folder, "node.d.ts"), "declare const process: { env: Record<string, string | undefined> };\n");

  await compileStrictly(folder, "main.ts", {
    types: "",
    lib: "es2024,dom,dom.asynciterable",
    more: ["node.d.ts", "--allowImportingTsExtensions"],
  });
});
