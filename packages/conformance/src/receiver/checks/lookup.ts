import { randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { type Check, check, describeAnswer } from "../check.ts";
import type { Answer } from "../exchange.ts";
import { bodyOf, type Expectation, refused, secretRefused } from "../expectations.ts";
import { bookingJson } from "../payloads.ts";
import type { Receiver } from "../receiver.ts";
import { type Request, secretPlaceholder } from "../request.ts";

/** What partners may ask. Only decisions of ours: the specification has no questions. */

const ndjson = "application/x-ndjson";
/** An event is applied within a second, unless many wait. */
const appliedWithinMs = 20_000;
const askAgainMs = 200;

export const unknownEvent: Request = ask("receipt", "/01a1fafe-d690-7608-9309-bff7f221cbc9");

export const lookupChecks: readonly Check[] = [
  question("lookup/unknown-event", "An event that nobody has sent gets 404.", {
    request: unknownEvent,
    expect: refused(404, "no-such-event"),
  }),
  question("lookup/secret", "A question with an invalid secret gets the same 403 as an event.", {
    request: { ...ask("receipt", "/x"), path: "/booking-event/receipt/no-secret-of-anyone/x" },
    expect: secretRefused,
  }),
  question("lookup/method", "A receipt, a booking and the activity are read by GET, and a list is posted.", {
    request: { ...ask("receipt", "/x"), method: "POST" },
    expect: refused(405, "wrong-method", { allows: "GET" }),
  }),
  question("lookup/booking-query", "A booking is asked for by one reference.", {
    request: ask("booking"),
    expect: refused(400, "invalid-reference"),
  }),
  question("lookup/booking-fields", "Readings are asked for by names of fields that are read.", {
    request: ask("booking", "?reference=X&fields=consumerGivenName"),
    expect: refused(400, "invalid-fields"),
  }),
  question("lookup/unknown-booking", "A booking that nobody has sent gets 404.", {
    request: ask("booking", `?reference=${randomUUID()}`),
    expect: refused(404, "no-such-booking"),
  }),
  question("lookup/empty-list", "An empty list is refused, unless it is meant.", {
    request: list(""),
    expect: refused(400, "empty-list"),
  }),
  question("lookup/wrong-lines", "Wrong lines of a list are named together, by their numbers.", {
    request: list('{"reference":"A"}\nhello\n{"reference":"B","digest":"x"}\n'),
    expect: wrongLines(["2"], ["3", "digest"]),
  }),
  question("lookup/contradiction", "A booking that is listed with two digests is a wrong line.", {
    request: list([1, 2].map((digit) => JSON.stringify({ reference: "A", digest: `${digit}`.repeat(64) })).join("\n")),
    expect: wrongLines(["2", "digest"]),
  }),
  {
    name: "lookup/life",
    demand: "An accepted event has a receipt, its booking a state, and a list is compared.",
    source: "ours",
    needsEvents: true,
    needsLookup: true,
    run: checkLife,
  },
  {
    name: "lookup/activity",
    demand: "The activity names answers, violations, secrets and limits, and no value.",
    source: "ours",
    needsLookup: true,
    run: checkActivity,
  },
];

function question(name: string, demand: string, trial: { request: Request; expect: Expectation }): Check {
  return { ...check(name, demand, { request: () => trial.request, expect: trial.expect }), needsLookup: true };
}

function ask(what: string, rest = ""): Request {
  return { to: "questions", method: "GET", path: `/booking-event/${what}/${secretPlaceholder}${rest}` };
}

function list(lines: string, query = ""): Request {
  return { ...ask("reconcile", query), method: "POST", type: ndjson, body: lines };
}

function wrongLines(...paths: string[][]): Expectation {
  return (answer, receiver) => {
    const { violationList } = bodyOf(answer);
    const seen = (Array.isArray(violationList) ? violationList : []).map((violation) => Object(violation).propertyPath);
    const isNamed = JSON.stringify(seen) === JSON.stringify(paths);
    const faults = refused(400, "invalid-list-line")(answer, receiver);
    return isNamed ? faults : [...faults, `the wrong lines are ${JSON.stringify(seen)}, not ${JSON.stringify(paths)}`];
  };
}

async function checkLife(receiver: Receiver): Promise<string[]> {
  const reference = receiver.newReference();
  const body = bookingJson(reference, { consumerPhone: "+44 20 7183 8750" });
  const accepted = await receiver.send({ body });
  const { eventId } = bodyOf(accepted);
  const receipt = await untilApplied(receiver, String(eventId));
  if (bodyOf(receipt)["status"] !== "applied") return [`the receipt is ${describeAnswer(receipt, receiver.secret)}`];
  const booking = await receiver.send(ask("booking", `?reference=${reference}`));
  const { state, decidedBy, digest } = bodyOf(booking);
  const { readings, code } = bodyOf(
    await receiver.send(ask("booking", `?reference=${reference}&fields=consumerPhone`)),
  );
  const phone = Object(readings)["consumerPhone"];
  const lines = [reference, reference, `${reference}-x`].map((one) => `{"reference":"${one}","yours":1}\n`).join("");
  const compared = await receiver.send(list(lines));
  const results = compared.body.split("\n").filter((line) => line.includes(reference) || line.includes("summary"));
  const summary = Object(parse(results.at(-1)))["summary"];
  return [
    ...(state === "active" && decidedBy === eventId && isDigest(digest)
      ? []
      : [`the booking is ${describeAnswer(booking, receiver.secret)}`]),
    // An operator may switch readings off.
    ...(phone === "+442071838750" || code === "readings-off" ? [] : [`consumerPhone is ${phone}`]),
    ...(results.length === 2 && results[0]?.includes('"missing"') ? [] : [`the list's answer has ${results[0]}`]),
    ...(summary?.references === 2 && summary.same === 1 && summary.missing === 1 ? [] : ["the summary is wrong"]),
  ];
}

async function untilApplied(receiver: Receiver, eventId: string): Promise<Answer> {
  const deadlineMs = performance.now() + appliedWithinMs;
  for (;;) {
    const receipt = await receiver.send(ask("receipt", `/${eventId}`));
    if (bodyOf(receipt)["status"] !== "waiting" || performance.now() > deadlineMs) return receipt;
    await wait(askAgainMs);
  }
}

const members = ["hours", "refusals", "violations", "warnings", "notices", "failed", "secrets"];

async function checkActivity(receiver: Receiver): Promise<string[]> {
  // It says something of the request, and not what was in it.
  await receiver.send({ dryRun: true, body: JSON.stringify({ canary: "canary-of-the-kit", consumerPhone: null }) });
  const answer = await receiver.send(ask("activity"));
  const body = bodyOf(answer);
  const missing = members.filter((name) => !Array.isArray(body[name]));
  const inUse = (Array.isArray(body["secrets"]) ? body["secrets"] : []).filter((one) => Object(one).isInUse === true);
  const { perSecond, bytesPerDay } = Object(body["limits"]);
  const refusedDay = refused(400, "invalid-day")(await receiver.send(ask("activity", "?day=2000-01-01")), receiver);
  return [
    ...(answer.status === 200 ? [] : [`the status is ${answer.status}, not 200`]),
    ...missing.map((name) => `${name} is no list`),
    ...(inUse.length === 1 ? [] : [`${inUse.length} secrets are in use, not one`]),
    ...(perSecond > 0 && bytesPerDay > 0 ? [] : ["the limits are missing"]),
    ...(answer.body.includes("canary") ? ["it has what was sent"] : []),
    ...refusedDay.map((fault) => `an old day: ${fault}`),
  ];
}

function isDigest(value: unknown): boolean {
  return typeof value === "string" && /^[0-9a-f]{64}$/.test(value);
}

function parse(line = ""): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
