import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { runProgram } from "./program.ts";

const secret = "program-canary-5f2c81";

async function run(...args: string[]) {
  const stdout: string[] = [];
  const stderr: string[] = [];
  const exitCode = await runProgram(args, {
    stdout: { write: (text) => stdout.push(text) },
    stderr: { write: (text) => stderr.push(text) },
  });
  return { exitCode, stdout: stdout.join(""), stderr: stderr.join("") };
}

/** A receiver that accepts every event. */
async function withReceiver<Result>(use: (url: string) => Promise<Result>): Promise<Result> {
  const server = createServer((_, response) => {
    const body = '{"success":true,"eventId":"01a1fafe-d690-7608-9309-bff7f221cbc9"}';
    response.writeHead(200, { "Content-Type": "application/json" }).end(body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    return await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    await once(server.close(), "close");
  }
}

test("the exit code of receiver is 0 if every check passed, and the report is for people", async () => {
  await withReceiver(async (url) => {
    const { exitCode, stdout } = await run("receiver", "--url", url, "--secret", secret, "--only", "operations/create");

    expect(stdout.replace(/Run [0-9a-f]{8}/, "Run 5f2c8100")).toBe(
      [
        ...["ok    operations/create-json", "ok    operations/create-form", "ok    clean-up"],
        ...["ok    answers/no-secret", "", "Run 5f2c8100: 4 passed, 0 failed.", ""],
      ].join("\n"),
    );
    expect(exitCode).toBe(0);
  });
});

test("the exit code of receiver is 1 if a check failed, and the report says what was seen", async () => {
  await withReceiver(async (url) => {
    const options = ["--url", url, "--secret", secret, "--only", "json/blank", "--only", "secrets/unknown"];
    const asText = await run("receiver", ...options);
    const asJson = await run("receiver", ...options, "--json");

    expect(asText).toMatchObject({ exitCode: 1, stderr: "" });
    expect(asText.stdout).toMatch(
      /FAIL {2}json\/blank\n {6}A body of blanks is malformed at its end\.\n {6}Seen: " {2}": the status is 200, not 400/,
    );
    expect(asJson.exitCode).toBe(1);
    expect(JSON.parse(asJson.stdout)).toMatchObject({
      failed: 2,
      checks: [
        { name: "secrets/unknown", source: "spec", outcome: "failed", seen: [expect.any(String)] },
        { name: "json/blank" },
        { name: "clean-up" },
        { name: "answers/no-secret" },
      ],
    });
  });
});

test.each([
  ["no URL", ["--secret", secret]],
  ["a URL that contains the secret", ["--url", `http://localhost/booking-event/create/${secret}`, "--secret", secret]],
  ["no URL at all", ["--url", `file:///${secret}`, "--secret", secret]],
  ["a secret with white space", ["--url", "http://localhost", "--secret", `${secret}\n`]],
  ["an unknown profile", ["--url", "http://localhost", "--secret", secret, "--profile", "half"]],
  ["a receiver that is not there", ["--url", "http://127.0.0.1:1", "--secret", secret]],
])("the exit code is 2, and the secret is not printed: %s", async (_, args) => {
  const { exitCode, stdout, stderr } = await run("receiver", ...args);

  expect(exitCode).toBe(2);
  expect(stdout).toBe("");
  expect(stderr).not.toBe("");
  expect(stderr).not.toContain(secret);
});
