import { type Check, check } from "../check.ts";
import { refused } from "../expectations.ts";
import { bookingJson, formType } from "../payloads.ts";
import type { Request } from "../request.ts";

/** Faults of a request in the order in which they are reported, as far as a sender can cause them. */
const faults = [
  { name: "two-hosts", status: 400, code: "repeated-host" },
  { name: "unknown-path", status: 404, code: "no-such-path" },
  { name: "wrong-method", status: 405, code: "wrong-method" },
  { name: "invalid-secret", status: 403, code: "invalid-secret" },
  { name: "announced-size", status: 413, code: "body-too-large" },
  { name: "two-types", status: 400, code: "two-content-types" },
  { name: "wrong-type", status: 415, code: "unsupported-type" },
  { name: "wrong-encoding", status: 415, code: "unsupported-encoding" },
  { name: "size", status: 413, code: "body-too-large" },
  { name: "not-utf-8", status: 400, code: "invalid-utf8" },
  { name: "malformed-json", status: 400, code: "malformed-json" },
  { name: "malformed-key", status: 400, code: "invalid-idempotency-key" },
  { name: "invalid-payload", status: 422, code: "invalid-data" },
] as const;
type Fault = (typeof faults)[number]["name"];

/** A pair is a check if its codes differ: a body that is too large is one fault, however it is noticed. */
export const orderChecks: readonly Check[] = faults.flatMap((earlier, index) =>
  faults
    .slice(index + 1)
    .filter((later) => later.code !== earlier.code)
    .map((later) =>
      check(
        `order/${earlier.name}-before-${later.name}`,
        `A request with both faults gets ${earlier.status} ${earlier.code}, not ${later.status} ${later.code}.`,
        {
          request: (reference) => requestWith(new Set([earlier.name, later.name]), reference),
          expect: refused(earlier.status, earlier.code),
        },
      ),
    ),
);

function requestWith(given: ReadonlySet<Fault>, reference: string): Request {
  const content = given.has("malformed-json") ? "{" : given.has("invalid-payload") ? "{}" : bookingJson(reference);
  const isTooLarge = given.has("size") || given.has("announced-size");
  return {
    method: given.has("wrong-method") ? "PUT" : "POST",
    ...(given.has("unknown-path") ? { path: "/bookings" } : {}),
    ...(given.has("invalid-secret") ? { secret: "conformance-nobody" } : {}),
    hosts: given.has("two-hosts") ? 2 : 1,
    type: given.has("wrong-type") ? "text/html" : "application/json",
    headers: [
      ...(given.has("two-types") ? [`Content-Type: ${formType}`] : []),
      ...(given.has("wrong-encoding") ? ["Content-Encoding: gzip"] : []),
      ...(given.has("malformed-key") ? ["Idempotency-Key: \u00e9"] : []),
    ],
    framing: given.has("size") && !given.has("announced-size") ? "chunked" : "length",
    body: Buffer.concat([
      Buffer.from(isTooLarge ? content.padEnd(70_000) : content),
      Buffer.from(given.has("not-utf-8") ? [0xff] : []),
    ]),
  };
}
