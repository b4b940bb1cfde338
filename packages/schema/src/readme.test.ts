import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { startScriptedReceiver } from "@booking-events/harness/scripted-receiver";
import { expect, test } from "vitest";
import { accepted, invalidData, queueUnavailable } from "./answers/answers.ts";
import { validatePayload } from "./payload/validate-payload.ts";

const packageDirectory = new URL("../", import.meta.url);
const readme = readFileSync(new URL("README.md", packageDirectory), "utf8");

const examples = Array.from(
  readme.matchAll(/## (?<title>[^\n]+)\n(?:(?!## ).)*?```ts\n(?<code>.*?)```\n\n```text\n(?<output>.*?)```/gs),
  ({ groups: { title = "", code = "", output = "" } = {} }) => ({ title, code, output }),
);

test.each(examples)("the README's example prints the stated output: $title", async ({ title, code, output }) => {
  const missingReference = validatePayload("update", { consumerGivenName: "Ada" });
  const { violationList } = missingReference.success ? { violationList: [] } : missingReference;
  const answers = [
    { ...queueUnavailable, headers: { "Retry-After": "0" } },
    accepted("01a1fafe-d690-7608-9309-bff7f221cbc9"),
    invalidData(violationList),
  ];
  const sending = answers.map((each) => ({ ...each, body: JSON.parse(each.body) }));
  const eventId = "01a1fafe-d690-7608-9309-bff7f221cbc9";
  const differences = [{ reference: "TRIP-9", result: "unknown" }, { summary: { references: 1 } }];
  const asking = [
    { status: 200, body: { eventId, status: "waiting" } },
    { status: 200, body: differences.map((line) => `${JSON.stringify(line)}\n`).join("") },
  ];
  const receiver = await startScriptedReceiver(title.startsWith("Ask") ? asking : sending);

  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--conditions=@booking-events/source", "--input-type=module-typescript", "--eval", code],
    {
      cwd: packageDirectory,
      env: { ...process.env, BOOKING_EVENTS_URL: receiver.url, BOOKING_EVENTS_SECRET: "readme-secret" },
    },
  );

  await receiver.close();
  expect(stdout).toBe(output);
});

test("every code block in the README is tested", () => {
  expect(examples).toHaveLength(readme.split("```ts\n").length - 1);
  expect(examples).toHaveLength(5);
});

/** The README is part of the package, whose other folders a reader may not have. */
test("no link of the README leads out of the package", () => {
  const links = Array.from(readme.matchAll(/\]\((?<link>[^)]+)\)/g), ({ groups }) => groups?.["link"] ?? "");

  expect(links.length).toBeGreaterThan(3);
  expect(links.filter((link) => link.startsWith("../"))).toEqual([]);
});
