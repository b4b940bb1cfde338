import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createBookingEventsClient } from "@booking-events/schema/client";
import { expect, test } from "vitest";
import { runProgram } from "./program.ts";
import { scenarios } from "./sender/scenarios.ts";

const secret = "program-canary-5f2c81";

function run(...args: string[]) {
  return runWith({}, ...args);
}

async function runWith(
  { onStderr, signal = new AbortController().signal }: { onStderr?: (text: string) => void; signal?: AbortSignal },
  ...args: string[]
) {
  const stdout: string[] = [];
  const stderr: string[] = [];
  const exitCode = await runProgram(args, {
    signal,
    stdout: { write: (text) => stdout.push(text) },
    stderr: {
      write(text) {
        stderr.push(text);
        onStderr?.(text);
      },
    },
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

test("the exit code of sender is 0 if the sender passed every scenario", async () => {
  const onStderr = (text: string) => {
    const [, baseUrl = "", secret = ""] = /to (http:\S+)\/booking-event\/create\/(\S+)\n/.exec(text) ?? [];
    const client = createBookingEventsClient({ baseUrl, secret, attemptTimeoutMs: 5_000 });
    for (const [index] of scenarios.entries()) {
      const booking = { consumerPartnerExternalReference: `C-${index}` };
      const created = client.create(booking).catch(() => {});
      if (index === 0) void created.then(() => client.update({ ...booking, consumerGivenName: "Ada" }));
    }
  };
  const { exitCode, stdout } = await runWith({ onStderr }, "sender", "--port", "0", "--speed", "4");

  expect(stdout).toMatch(/^ok {4}accepted\nok {4}unavailable \(2 attempts, after \d{4} ms\)\n/);
  expect(stdout).toMatch(
    /\nok {4}own-keys\nok {4}one-after-another\nwarn {2}no-trip-reference at consumer\w+, \d+ times: /,
  );
  expect(stdout).toMatch(/\n13 passed, 0 failed, 0 without an event\.\n$/);
  expect(exitCode).toBe(0);
});

test("a run of sender that is ended early reports what it has seen, and exits with 1", async () => {
  const stopping = new AbortController();
  const options = { onStderr: () => stopping.abort(), signal: stopping.signal };
  const { exitCode, stdout } = await runWith(options, "sender", "--port", "0", "--secret", "s/1", "--json");

  expect(JSON.parse(stdout)).toMatchObject({
    passed: 0,
    missing: 13,
    scenarios: [{ outcome: "missing" }, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}],
  });
  expect(exitCode).toBe(1);
});

test("a run of sender in which every request is refused ends, and says why", async () => {
  const onStderr = (text: string) => {
    const [, url = ""] = /to (http:\S+)\/booking-event\//.exec(text) ?? [];
    if (url !== "") void fetch(`${url}/bookings`, { method: "POST" });
  };
  const { exitCode, stdout } = await runWith({ onStderr }, "sender", "--port", "0", "--timeout", "1", "--json");

  expect(JSON.parse(stdout)).toMatchObject({ missing: 13, refused: [{ status: 404, count: 1 }] });
  expect(exitCode).toBe(1);
});

test("sender on a port that is taken says so, and nothing was checked", async () => {
  await withReceiver(async (url) => {
    const { port } = new URL(url);

    expect(await run("sender", "--port", port)).toEqual({
      exitCode: 2,
      stdout: "",
      stderr: `Cannot listen at 127.0.0.1, port ${port} (EADDRINUSE).\n`,
    });
  });
});

test.each([["--port", "65536"], ["--port", "x"], ["--port", "1.5"], ["--port", "0", "--speed", "0"], []])(
  "sender %s is wrong usage",
  async (...args) => {
    expect(await run("sender", ...args)).toMatchObject({ exitCode: 2, stdout: "" });
  },
);
