import { execFile } from "node:child_process";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import openapiTypescript, { astToString } from "openapi-typescript";
import { afterAll, beforeAll, expect, test } from "vitest";
import { prepareSurroundings } from "./surroundings.ts";

const secret = "a-secret-of-the-test-with-enough-characters";
const surroundings = prepareSurroundings(secret);
/** Here, packages are found, and no other check looks at the files. */
const folder = join(import.meta.dirname, "node_modules/.generated-client");
const compiler = fileURLToPath(import.meta.resolve("typescript/bin/tsc"));

/** What a partner would write. The compiler must accept it, and refuse the lines after each `@ts-expect-error`. */
const program = `
import createClient from "openapi-fetch";
import type { components, paths } from "./openapi.js";

const client = createClient<paths>({ baseUrl: process.env.URL ?? "" });
const params = { path: { secret: process.env.SECRET ?? "" }, header: { "Idempotency-Key": "k-1" } };
const booking: components["schemas"]["BookingInput"] = {
  consumerTripPartnerExternalReference: "TRIP-1",
  consumerLanguage: null,
  loyaltyTier: "gold",
};

const accepted = await client.POST("/booking-event/create/{secret}", { params, body: booking });
console.log("eventId" in (accepted.data ?? {}) ? "accepted" : "not accepted");

const body = { consumerTripPartnerExternalReference: "TRIP-1" };
const deleted = await client.POST("/booking-event/delete/{secret}", {
  params: { ...params, header: { "X-Dry-Run": "true" } },
  body,
  headers: { "Content-Type": "application/x-www-form-urlencoded" },
});
console.log(JSON.stringify(deleted.data));

const refused = await client.POST("/booking-event/update/{secret}", {
  params,
  // @ts-expect-error: a number
  body: { ...body, consumerPhone: 7 },
});
const { error } = refused;
if (error !== undefined && "violationList" in error) {
  const code: "invalid-data" = error.code;
  for (const { propertyPath, message } of error.violationList) console.log(code, propertyPath.join("."), typeof message);
}

// @ts-expect-error: not null
const withNull: components["schemas"]["BookingInput"] = { ...body, consumerPhone: null };
// @ts-expect-error: no reference
const withoutReference: components["schemas"]["BookingInput"] = { consumerGivenName: "Ada" };
// @ts-expect-error: no such operation
void client.POST("/booking-event/cancel/{secret}", {});
void [withNull, withoutReference];
`;

beforeAll(async () => {
  await mkdir(folder, { recursive: true });
  const document = await readFile(new URL(import.meta.resolve("@booking-events/schema/openapi.json")), "utf8");
  await writeFile(join(folder, "openapi.ts"), astToString(await openapiTypescript(document)));
  await writeFile(join(folder, "program.ts"), program);
  await writeFile(join(folder, "package.json"), '{"type":"module"}');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test("a client that openapi-typescript generates compiles, and understands the service", async () => {
  const options = ["--strict", "--exactOptionalPropertyTypes", "--module", "nodenext", "--target", "es2024"];
  const compile = [compiler, ...options, "--types", "node", "--skipLibCheck", "program.ts"];
  const run = promisify(execFile);
  const { stdout: faults } = await run(process.execPath, compile, { cwd: folder }).catch(({ stdout }) => ({ stdout }));
  expect(faults).toBe("");
  const ingest = await surroundings().start("ingest");
  const env = { URL: ingest.url, SECRET: secret };
  const { stdout } = await run(process.execPath, ["program.js"], { cwd: folder, env });
  expect(stdout.split("\n")).toEqual([
    "accepted",
    '{"success":true,"dryRun":true}',
    "invalid-data consumerPhone string",
    "",
  ]);
});
