import { setTimeout as wait } from "node:timers/promises";
import { createBookingEventsClient } from "@booking-events/schema/client";
import { expect, test } from "vitest";
import { habits } from "./judge-habits.ts";
import { type PlayReceiverOptions, playReceiver } from "./play-receiver.ts";
import { scenarios } from "./scenarios.ts";
import type { SenderReport } from "./sender-run.ts";

/** One for each scenario. The first one is updated after it was created. */
const bookings = scenarios.map((_, index) => ({ consumerTripPartnerExternalReference: `TRIP-${index}` }));

/** Runs a sender against the receiver with faults. */
async function run(
  send: (booking: object, url: string) => Promise<unknown>,
  options: Partial<PlayReceiverOptions> = {},
): Promise<SenderReport> {
  const { url, secret, report } = await playReceiver({ port: 0, speed: 4, ...options });
  const sending = bookings.map((booking) => send(booking, `${url}/booking-event/create/${secret}`).catch(() => {}));
  const [first] = sending;
  const afterFirst = first?.then(() => send({ ...bookings[0], note: "2" }, `${url}/booking-event/update/${secret}`));
  await Promise.all([...sending, afterFirst?.catch(() => {}), report]);
  return report;
}

interface Habits {
  attempts: number;
  delayMs?: (attempt: number) => number;
  minDelayMs?: (response: Response | undefined) => number;
  key?: (attempt: number, event: string) => string | undefined;
  body?: (booking: object, attempt: number) => string;
  timeoutMs?: number;
  isFinal?: (status: number) => boolean;
}

/** A sender that does everything right except what its habits say. */
function senderWith(habits: Habits) {
  const { attempts, delayMs = (attempt) => 600 * 2 ** attempt, timeoutMs = 5_000, minDelayMs = retryAfterMs } = habits;
  const { key = (_, event) => `key of ${event}`, body = (booking) => JSON.stringify(booking) } = habits;
  const { isFinal = (status: number) => status < 429 && status !== 408 } = habits;
  return async (booking: object, url: string) => {
    for (let attempt = 1; ; attempt += 1) {
      const ownKey = key(attempt, JSON.stringify(booking));
      const headers = {
        "Content-Type": "application/json",
        ...(ownKey === undefined ? {} : { "Idempotency-Key": ownKey }),
      };
      const signal = AbortSignal.timeout(timeoutMs);
      const answer = fetch(url, { method: "POST", headers, body: body(booking, attempt), signal });
      const response = await answer.catch(() => undefined);
      if (isFinal(response?.status ?? 599) || attempt >= attempts) return;
      await wait(Math.max(delayMs(attempt), minDelayMs(response)));
    }
  };
}

function retryAfterMs(response: Response | undefined): number {
  return Number(response?.headers.get("Retry-After") ?? 0) * 1_000 + 50;
}

/** The names of the scenarios in which the sender did what `fault` says. */
function namesWith({ scenarios }: SenderReport, fault: RegExp): string[] {
  return scenarios.filter(({ seen }) => seen.some((each) => fault.test(each))).map(({ name }) => name);
}

const retried = scenarios.filter(({ steps }) => steps.length > 1).map(({ name }) => name);
const all = scenarios.length + habits.length;
const refused = ["invalid-data", "bad-request", "invalid-secret"];

test.concurrent("the client of the schema package passes every scenario", async () => {
  const { url, secret, report } = await playReceiver({ port: 0, speed: 4 });
  const client = createBookingEventsClient({ baseUrl: url, secret, attemptTimeoutMs: 5_000 });
  const results = await Promise.all(bookings.map((booking) => client.create(booking).catch(({ code }) => code)));
  await client.update({ ...bookings[0], note: "2" });

  expect(await report).toMatchObject({ passed: all, failed: 0, missing: 0, refused: [], warnings: [] });
  expect(results.filter((result) => typeof result === "string").sort()).toEqual([
    ...["invalid-data", "invalid-secret", "not-an-object"],
  ]);
});

test.concurrent("the sender of these tests passes every scenario if it has no bad habit", async () => {
  const report = await run(senderWith({ attempts: 4 }));

  expect(report).toMatchObject({ passed: all, failed: 0 });
});

test.concurrent("a sender that never retries is named in every scenario that needs it", async () => {
  const report = await run(senderWith({ attempts: 1 }), { timeoutMs: 6_000 });

  expect(report).toMatchObject({ passed: all - retried.length, failed: retried.length });
  expect(namesWith(report, /^1 attempt instead of [24]$/)).toEqual(retried);
});

test.concurrent("a sender that retries everything at once is named", async () => {
  const report = await run(
    senderWith({ attempts: 5, delayMs: () => 1, minDelayMs: () => 1, isFinal: (status) => status === 200 }),
  );

  expect(namesWith(report, /^5 attempts instead of 1$/)).toEqual(refused);
  expect(namesWith(report, /before Retry-After$/)).toEqual(["unavailable", "over-rate-limit"]);
});

test.concurrent("a sender whose delays do not grow is named", async () => {
  const report = await run(senderWith({ attempts: 5, delayMs: (attempt) => 4_000 / attempt }));

  expect(namesWith(report, /^delays that do not grow: /)).toEqual(["bad-gateway"]);
  expect(report).toMatchObject({ passed: all - 1, failed: 1 });
});

test.concurrent("a sender that has no key, a new key or other bytes in each attempt is named", async () => {
  const [noKey, newKey, otherBytes] = await Promise.all([
    run(senderWith({ attempts: 4, key: () => undefined })),
    run(senderWith({ attempts: 4, key: (attempt, event) => `key ${attempt} of ${event}` })),
    run(senderWith({ attempts: 4, body: (booking, attempt) => JSON.stringify({ ...booking, attempt }) })),
  ]);

  expect(namesWith(noKey, /^no Idempotency-Key$/)).toEqual(scenarios.map(({ name }) => name));
  expect(namesWith(newKey, /^another Idempotency-Key in a later attempt$/)).toEqual(retried);
  expect(namesWith(otherBytes, /^other bytes in a later attempt$/)).toEqual(retried);
});

test.concurrent("a sender that waits too briefly, or without a limit, is named", async () => {
  const [brief, endless] = await Promise.all([
    run(senderWith({ attempts: 4, timeoutMs: 200 })),
    run(senderWith({ attempts: 4, timeoutMs: 30_000 })),
  ]);

  expect(namesWith(brief, /^\d attempts instead of 1$/)).toContain("slow-answer");
  expect(namesWith(endless, /^waited for an answer until the connection closed$/)).toEqual(["no-answer"]);
});

test.concurrent("requests without an event are counted, and scenarios without an event are not passed", async () => {
  const { url, secret, report } = await playReceiver({ port: 0, speed: 4, timeoutMs: 2_000 });
  const post = (path: string, body: object) =>
    fetch(`${url}/booking-event/${path}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "Idempotency-Key": "k" },
      body: JSON.stringify(body),
    }).then(({ status }) => status);

  expect(await post("create/nobody", {})).toBe(403);
  expect(await post(`create/${secret}`, {})).toBe(422);
  expect(await post(`create/${secret}`, {})).toBe(422);
  expect(await post(`delete/${secret}`, { consumerPartnerExternalReference: "C-1" })).toBe(200);

  expect(await report).toMatchObject({
    ...{ passed: 2, failed: 0, missing: scenarios.length },
    violations: [{ code: "missing", propertyPath: ["consumerTripPartnerExternalReference"], count: 2 }],
    refused: [
      { status: 403, message: "Invalid secret", count: 1 },
      { status: 422, message: "Invalid data", count: 2 },
    ],
  });
});
