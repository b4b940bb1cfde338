import { type Check, check } from "../check.ts";
import { bodyOf, type Expectation } from "../expectations.ts";
import { bookingJson, formType } from "../payloads.ts";
import type { Request } from "../request.ts";

/** Faults of a request in the order in which they are reported, as far as a sender can cause them. */
const faults = [
  { name: "two-hosts", status: 400 },
  { name: "unknown-path", status: 404 },
  { name: "wrong-method", status: 405 },
  { name: "invalid-secret", status: 403 },
  { name: "announced-size", status: 413 },
  { name: "two-types", status: 400 },
  { name: "wrong-type", status: 415 },
  { name: "wrong-encoding", status: 415 },
  { name: "size", status: 413 },
  { name: "not-utf-8", status: 400 },
  { name: "malformed-json", status: 400 },
  { name: "malformed-key", status: 400 },
  { name: "invalid-payload", status: 422 },
] as const;
type Fault = (typeof faults)[number]["name"];

/** A pair is a check if its statuses differ, since nothing else tells the two faults apart at every receiver. */
export const orderChecks: readonly Check[] = faults.flatMap((earlier, index) =>
  faults
    .slice(index + 1)
    .filter((later) => later.status !== earlier.status)
    .map((later) =>
      check(
        "ours",
        `order/${earlier.name}-before-${later.name}`,
        `A request with both faults gets ${earlier.status}, not ${later.status}.`,
        {
          request: (reference) => requestWith(new Set([earlier.name, later.name]), reference),
          expect: hasStatus(earlier.status),
        },
      ),
    ),
);

function hasStatus(status: number): Expectation {
  return (answer) => {
    const { message } = bodyOf(answer);
    return [
      ...(answer.status === status ? [] : [`the status is ${answer.status}, not ${status}`]),
      ...(typeof message === "string" ? [] : ["the body has no message"]),
    ];
  };
}

function requestWith(given: ReadonlySet<Fault>, reference: string): Request {
  const content = given.has("malformed-json") ? "{" : given.has("invalid-payload") ? "{}" : bookingJson(reference);
  const isTooLarge = given.has("size") || given.has("announced-size");
  return {
    method: given.has("wrong-method") ? "PUT" : "POST",
    ...(given.has("unknown-path") ? { path: "/bookings" } : {}),
    ...(given.has("invalid-secret") ? { secret: "conformance-nobody" } : {}),
    hosts: given.has("two-hosts") ? 2 : 1,
    type: given.has("wrong-type") ? "text/plain" : "application/json",
    headers: [
      ...(given.has("two-types") ? [`Content-Type: ${formType}`] : []),
      ...(given.has("wrong-encoding") ? ["Content-Encoding: gzip"] : []),
      ...(given.has("malformed-key") ? ["Idempotency-Key: a b"] : []),
    ],
    framing: given.has("size") && !given.has("announced-size") ? "chunked" : "length",
    body: Buffer.concat([
      Buffer.from(isTooLarge ? content.padEnd(70_000) : content),
      Buffer.from(given.has("not-utf-8") ? [0xff] : []),
    ]),
  };
}
