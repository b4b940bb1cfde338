import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Ran, runOps } from "../testing/run-ops.ts";

const secret = "kJ3_sample-secret";
let server: Server;
let url: string;
let folder: string;
let received: { url: string | undefined; headers: IncomingHttpHeaders; body: string }[];
let answer: { status: number; headers?: Record<string, string>; body: string };

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "ops-send-"));
  server = createServer(async (request, response) => {
    received.push({ url: request.url, headers: request.headers, body: await text(request) });
    response.writeHead(answer.status, answer.headers).end(answer.body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(async () => {
  server.close();
  await rm(folder, { recursive: true });
});

beforeEach(() => {
  received = [];
  answer = { status: 200, body: '{"success":true,"eventId":"e1"}' };
});

/** @returns the path of a file with this content */
async function write(content: unknown): Promise<string> {
  const path = join(folder, "event.json");
  await writeFile(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

async function send(content: unknown, ...options: string[]): Promise<Ran> {
  return runOps(["send", "create", await write(content), "--url", url, "--secret", secret, ...options]);
}

test("an accepted event prints the answer", async () => {
  const { exitCode, stdout, stderr } = await send({ consumerGivenName: "Ada" });
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  expect(stdout).toMatch(/^200 OK, after \d+ ms\n\{"success":true,"eventId":"e1"\}\n$/);
  expect(received).toMatchObject([
    {
      url: `/booking-event/create/${secret}`,
      headers: { "content-type": "application/json" },
      body: '{"consumerGivenName":"Ada"}',
    },
  ]);
});

test("any other answer is printed too, and fails", async () => {
  answer = { status: 503, headers: { "Retry-After": "5" }, body: '{"message":"Later."}' };
  const { exitCode, stdout, stderr } = await send({});
  expect(exitCode).toBe(1);
  expect(stdout).toMatch(/^503 Service Unavailable, after \d+ ms, Retry-After: 5\n\{"message":"Later."\}\n$/);
  expect(stderr).toBe("The event was not accepted.\n");
});

describe("what is sent", () => {
  test.each([
    ["the bytes of a file as they are", '{ "a": 1.0, "a": 2 }\n', '{ "a": 1.0, "a": 2 }\n'],
    ["what is no JSON, so that the answer can be seen", "{oops", "{oops"],
    ["a sample's payload", { description: "…", payload: { a: "b" } }, '{"a":"b"}'],
    ["a payload that is no object is a field", '{"payload":"x"}', '{"payload":"x"}'],
  ])("%s", async (_, content, body) => {
    await send(content);
    expect(received.map((request) => request.body)).toEqual([body]);
  });

  test("a sample's own body, in its own type", async () => {
    await send({ payload: { a: "b c" }, contentType: "application/x-www-form-urlencoded", body: "a=b%20c" });
    expect(received).toMatchObject([
      { headers: { "content-type": "application/x-www-form-urlencoded" }, body: "a=b%20c" },
    ]);
  });

  test("--form sends the same fields as a form", async () => {
    await send({ payload: { a: "b & c", é: "+" } }, "--form");
    expect(received).toMatchObject([
      { headers: { "content-type": "application/x-www-form-urlencoded" }, body: "a=b+%26+c&%C3%A9=%2B" },
    ]);
  });

  test("a form can't hold what is no text", async () => {
    const { exitCode, stderr } = await send({ a: "b", n: null, list: [] }, "--form");
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/which these fields are not: n, list/);
    expect(received).toEqual([]);
  });

  test("--dry-run and --idempotency-key are headers, and only if asked for", async () => {
    await send({});
    await send({}, "--dry-run", "--idempotency-key", "k-1");
    expect(received[0]?.headers).not.toHaveProperty("x-dry-run");
    expect(received[0]?.headers).not.toHaveProperty("idempotency-key");
    expect(received[1]?.headers).toMatchObject({ "x-dry-run": "true", "idempotency-key": "k-1" });
  });
});

describe("the secret", () => {
  test("comes from the environment or standard input, without the line's end", async () => {
    const file = await write({});
    const args = ["send", "delete", file, "--url", `${url}/base/`];
    await runOps(args, { environment: { BOOKING_EVENTS_SECRET: "from env\n" } });
    await runOps([...args, "--secret", "-"], {
      environment: { BOOKING_EVENTS_SECRET: "from env" },
      stdin: "from-stdin\r\nmore\n",
    });
    expect(received.map((request) => request.url)).toEqual([
      "/base/booking-event/delete/from%20env",
      "/base/booking-event/delete/from-stdin",
    ]);
  });

  test.each([
    ["is not given", []],
    ["is empty on standard input", ["--secret", "-"]],
  ])("that %s is asked for", async (_, options) => {
    const ran = await runOps(["send", "create", await write({}), "--url", url, ...options]);
    expect(ran).toMatchObject({ exitCode: 2, stdout: "" });
    expect(ran.stderr).toMatch(/A secret is needed/);
  });

  test("is not shown where a server repeats the path, nor can the answer steer the terminal", async () => {
    answer = { status: 404, body: `Cannot POST /booking-event/create/${secret}\u001b[2J\nbye` };
    const { stdout, stderr } = await send({});
    expect(stdout).toContain(String.raw`Cannot POST /booking-event/create/{secret}\u001b[2J${"\nbye"}`);
    expect(stdout + stderr).not.toContain(secret);
  });

  test("does not follow a redirection", async () => {
    answer = { status: 307, headers: { Location: `${url}/elsewhere` }, body: "" };
    expect((await send({})).exitCode).toBe(1);
    expect(received).toHaveLength(1);
  });

  test("is not in the message when nothing answers", async () => {
    const closed = createServer().listen(0, "127.0.0.1");
    await once(closed, "listening");
    const { port } = closed.address() as AddressInfo;
    closed.close();
    await once(closed, "close");
    const args = ["send", "create", await write({}), "--secret", secret];
    // PORT is where ingest listens, so it is where send looks for it.
    const { exitCode, stdout, stderr } = await runOps(args, { environment: { PORT: String(port) } });
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
    expect(stderr).toBe(
      `http://127.0.0.1:${port} can't be reached (ECONNREFUSED). Check that ingest runs there, or give its --url.\n`,
    );
  });
});

test.each([
  ["a kind that does not exist", ["send", "cancel", "x.json"], 2, /Allowed choices are create, update, delete/],
  ["no file", ["send", "create"], 2, /missing required argument 'file'/],
  ["a file that can't be read", ["send", "create", "missing.json", "--secret", "x"], 1, /missing.json can't be read/],
  ["a URL with a password", ["send", "create", "x", "--url", "http://u:p@h"], 2, /without a user or password/],
])("%s fails with a sentence", async (_, args, exitCode, sentence) => {
  const ran = await runOps(args);
  expect(ran).toMatchObject({ exitCode, stdout: "" });
  expect(ran.stderr).toMatch(sentence);
});
