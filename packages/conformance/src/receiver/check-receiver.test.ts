import { once } from "node:events";
import { createServer as createHttpServer, type IncomingMessage, type RequestListener } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, test } from "vitest";
import { CannotCheck } from "../cannot-check.ts";
import { checkReceiver, type ReceiverReport } from "./check-receiver.ts";
import { formatReceiverReport } from "./format-report.ts";
import type { CheckReceiverOptions } from "./receiver.ts";

const secret = "conformance-canary-5f2c81";
const eventId = "01a1fafe-d690-7608-9309-bff7f221cbc9";
const servers: Server[] = [];

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => once(server.close(), "close")));
});

async function listen(server: Server): Promise<URL> {
  servers.push(server.listen(0, "127.0.0.1"));
  await once(server, "listening");
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
}

/** A receiver that gives every request the same answer, as soon as it begins. */
function constantReceiver(status: number, body: object, headers = ""): Server {
  const content = JSON.stringify(body);
  return createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => {
      socket.end(
        `HTTP/1.1 ${status} X\r\nContent-Type: application/json\r\nContent-Length: ${content.length}\r\n` +
          `Allow: POST\r\n${headers}\r\n${content}`,
      );
    });
  });
}

async function check(server: Server, options: Partial<CheckReceiverOptions> = {}): Promise<ReceiverReport> {
  const url = await listen(server);
  return checkReceiver({ url, lookupUrl: url, secret, ...options });
}

function namesOf({ checks }: ReceiverReport, outcome: "passed" | "failed" | "skipped"): string[] {
  return checks.filter((each) => each.outcome === outcome).map(({ name }) => name);
}

test("every check fails for some receiver that always gives the same answer", async () => {
  const reports = [
    await check(constantReceiver(200, { success: true, eventId })),
    await check(constantReceiver(403, { message: `Invalid ${secret}` })),
  ];
  // The clean-up has a test of its own below.
  const failed = new Set([...reports.flatMap((report) => namesOf(report, "failed")), "clean-up"]);

  expect(reports.flatMap((report) => namesOf(report, "passed")).filter((name) => !failed.has(name))).toEqual([]);
  expect(failed.size).toBeGreaterThan(250);
});

describe("a careless receiver", () => {
  const invalidSecret = { message: "Invalid secret", code: "invalid-secret" };

  /** The textbook's: it parses what it gets, and requires what it needs. */
  const careless: RequestListener = async (request, response) => {
    const [, root, operation, ownSecret] = new URL(request.url ?? "", "http://localhost").pathname.split("/");
    const answer = (status: number, body: object) => {
      response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
    };
    if (root !== "booking-event" || operation === undefined) return answer(404, { message: "Not found" });
    if (request.method !== "POST") return answer(405, { message: "Method not allowed" });
    if (decodeURI(ownSecret ?? "") !== secret) return answer(403, { ...invalidSecret, secret: ownSecret });
    const payload = await read(request);
    if (payload === undefined) return answer(400, { message: "Malformed", code: "malformed-json" });
    const isWrong = payload["consumerPhone"] === null;
    if (!isWrong) return answer(200, { success: true, eventId });
    const violationList = [{ message: "null", propertyPath: ["consumerPhone"] }];
    answer(422, { message: "Invalid data", code: "invalid-data", violationList });
  };

  async function read(request: IncomingMessage): Promise<Record<string, unknown> | undefined> {
    const body = await text(request);
    if (/form/.test(request.headers["content-type"] ?? "")) return Object.fromEntries(new URLSearchParams(body));
    try {
      return JSON.parse(body);
    } catch {
      return undefined;
    }
  }

  function carelessReceiver(): Server {
    const server = createHttpServer(
      { requestTimeout: 1_000, connectionsCheckingInterval: 100 },
      async (...exchange) => {
        try {
          await careless(...exchange);
        } catch {
          exchange[1].writeHead(500).end();
        }
      },
    );
    return server;
  }

  test("is told what it does wrong, check by check", async () => {
    const report = await check(carelessReceiver());

    expect(namesOf(report, "passed")).toEqual(
      expect.arrayContaining(["operations/create-json", "secrets/unknown", "json/malformed", "bodies/chunked"]),
    );
    expect(namesOf(report, "failed")).toEqual(
      expect.arrayContaining([
        ...["operations/event-ids", "dry-run/valid", "paths/method", "secrets/undecodable", "secrets/same-bytes"],
        ...["sizes/body", "types/refused", "json/duplicate-keys", "json/long-numbers", "forms/duplicate-fields"],
        ...["http/two-hosts", "keys/refused", "fields/consumerPhone/type", "fields/agentEmail/length"],
        ...["references/blank", "examples/invalid-email", "order/wrong-type-before-malformed-json"],
      ]),
    );
    expect(report.checks.find(({ name }) => name === "fields/consumerPhone/type")?.seen).toEqual([
      expect.stringMatching(/^1: the status is 200, not 422 \(200 \{"success":true,.*\}\)$/),
      ...["true", "[]", "{}"].map((value) => expect.stringContaining(`${value}: the status is 200`)),
    ]);
  });

  test("is checked for what the specification says only, if that is asked for", async () => {
    const report = await check(carelessReceiver(), { profile: "spec" });

    expect(report.checks.filter(({ source, name }) => source !== "spec" && name !== "answers/no-secret")).toEqual([]);
    expect(namesOf(report, "passed")).toContain("operations/create-json");
    expect(namesOf(report, "failed")).toContain("fields/agentEmail/type");
  });

  test("gets only the checks that are asked for", async () => {
    const report = await check(carelessReceiver(), { only: ["json/malformed", "keys/"] });

    expect(report.checks.map(({ name }) => name)).toEqual([
      ...["json/malformed", "keys/accepted", "keys/webhook-id", "keys/empty", "keys/refused", "keys/different"],
      ...["clean-up", "answers/no-secret"],
    ]);
    await expect(check(carelessReceiver(), { only: ["nothing"] })).rejects.toThrow(CannotCheck);
  });
});

test("an answer with the secret fails the run, and the report does not contain the secret", async () => {
  const report = await check(constantReceiver(403, { message: `No partner has ${secret}.` }), {
    only: ["operations/"],
  });

  expect(namesOf(report, "failed")).toContain("answers/no-secret");
  expect(JSON.stringify(report)).toContain("No partner has [secret].");
  expect(JSON.stringify(report)).not.toContain(secret);
});

test("questions are not checked if nothing answers them beside the events, and the report says so", async () => {
  const only = ["lookup/", "operations/create-json"];
  const report = await check(constantReceiver(200, { success: true, eventId }), { only, lookupUrl: undefined });

  expect(namesOf(report, "passed")).toContain("operations/create-json");
  expect(namesOf(report, "skipped")).toContain("lookup/life");
  expect(formatReceiverReport(report)).toMatch(/\nQuestions .* were not checked: .* --lookup-url\.\nRun /);
  expect((await check(constantReceiver(200, {}), { only })).lookupProblem).toBeNull();
});

test("bookings that cannot be deleted are named", async () => {
  const server = createHttpServer((request, response) => {
    const status = request.url?.includes("/delete/") ? 503 : 200;
    response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify({ success: true, eventId }));
  });

  const report = await check(server, { only: ["bodies/chunked"] });

  expect(report.checks.find(({ name }) => name === "clean-up")).toMatchObject({
    outcome: "failed",
    // The first one was meant as a dry run.
    seen: [1, 2].map((number) =>
      expect.stringMatching(
        new RegExp(`^conformance-[0-9a-f]{8}-${number} is still there, because its delete got 503$`),
      ),
    ),
  });
});

test("a booking is deleted by each of its references, of which a receiver may know only one", async () => {
  const deletes: Record<string, string>[] = [];
  const server = createHttpServer(async (request, response) => {
    if (request.url?.includes("/delete/")) deletes.push(JSON.parse(await text(request)));
    response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify({ success: true, eventId }));
  });

  await check(server, { only: ["bodies/chunked"] });

  for (const { consumerTripPartnerExternalReference: reference, ...rest } of deletes)
    expect(rest).toEqual({ consumerPartnerExternalReference: reference });
  expect(deletes).toHaveLength(2);
});

describe("with dry runs only", () => {
  test("every request is a dry run", async () => {
    const dryRuns: (string | undefined)[] = [];
    const server = createHttpServer((request, response) => {
      dryRuns.push(request.headers["x-dry-run"]?.toString());
      response.writeHead(200, { "Content-Type": "application/json" }).end('{"success":true,"dryRun":true}');
    });

    const report = await check(server, { dryRunOnly: true, only: ["operations/", "dry-run/", "keys/", "secrets/"] });

    expect(namesOf(report, "skipped")).toEqual([
      "operations/event-ids",
      "dry-run/header",
      "dry-run/refused",
      "dry-run/live",
    ]);
    expect(namesOf(report, "passed")).toContain("operations/create-json");
    expect(new Set(dryRuns)).toEqual(new Set(["true"]));
  });

  test("a receiver that would store them gets only one request", async () => {
    let requests = 0;
    const server = createHttpServer((_, response) => {
      requests += 1;
      response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify({ success: true, eventId }));
    });

    await expect(check(server, { dryRunOnly: true })).rejects.toThrow(/does not say "dryRun": true/);
    expect(requests).toBe(1);
  });
});

test("a request is sent again after Retry-After if the receiver is busy", async () => {
  let requests = 0;
  const server = createHttpServer((_, response) => {
    requests += 1;
    const isBusy = requests % 2 === 1;
    const body = JSON.stringify({ success: true, eventId });
    response.writeHead(isBusy ? 429 : 200, { "Content-Type": "application/json", "Retry-After": "0" }).end(body);
  });

  const report = await check(server, { only: ["operations/create-json"] });

  expect(namesOf(report, "failed")).toEqual([]);
  expect(requests).toBe(8);
});
