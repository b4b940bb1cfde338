import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";
import { describe, expect, test } from "vitest";

const source = fileURLToPath(new URL("../src/", import.meta.url));

/** Bundles a program as for a browser. Unresolved imports, such as Node's modules, make it fail. */
async function bundle(program: string): Promise<string> {
  const build = await rolldown({
    input: "program",
    platform: "neutral",
    onLog(_, log) {
      throw new Error(log.message);
    },
    plugins: [
      {
        name: "program",
        resolveId: (id) => (id === "program" ? `${source}program.ts` : undefined),
        load: (id) => (id === `${source}program.ts` ? program : undefined),
      },
    ],
  });
  const { output } = await build.generate({ minify: true });
  await build.close();
  expect(output).toHaveLength(1);
  return output[0].code;
}

describe("a bundle has, compressed,", () => {
  test.each([
    ["the client", 'export { createBookingEventsClient } from "./client/index.ts";', 4_600],
    ["the validator", 'export { validatePayload } from "./index.ts";', 8_600],
    ["all that normalises", 'export { normaliseBooking } from "./normalise/index.ts";', 57_000],
    ["one reader", 'export { readCountry } from "./normalise/index.ts";', 7_000],
    ["the names of the kinds", 'export { eventKinds } from "./index.ts";', 100],
  ])("%s in its budget of bytes", async (_, program, budgetBytes) => {
    expect(gzipSync(await bundle(program)).length).toBeLessThan(budgetBytes);
  });
});

test("the client's bundle runs by itself, without valibot", async () => {
  const code = await bundle('export { createBookingEventsClient } from "./client/index.ts";');
  const { createBookingEventsClient } = await import(`data:text/javascript,${encodeURIComponent(code)}`);

  expect(createBookingEventsClient({ baseUrl: "https://bookings.example.com", secret: "s" })).toHaveProperty("create");
  expect(code).not.toMatch(/\bimport\b|rfcEmail/);
});

test("only what reads phone numbers has their metadata", async () => {
  const hasMetadata = async (program: string) => (await bundle(program)).includes("country_calling_codes");

  expect(await hasMetadata('export { readPhone } from "./normalise/index.ts";')).toBe(true);
  for (const name of ["validatePayload", "BookingInput", "parseJsonObject", "bookingFields"])
    expect(await hasMetadata(`export { ${name} } from "./index.ts";`)).toBe(false);
});

test("a program that needs a module of Node cannot be bundled", async () => {
  await expect(bundle('export { readFileSync } from "node:fs";')).rejects.toThrow("node:fs");
});
