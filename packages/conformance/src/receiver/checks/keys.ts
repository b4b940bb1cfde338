import { type Check, check } from "../check.ts";
import { accepted, type Expectation, refused, warned } from "../expectations.ts";
import { create } from "../payloads.ts";

const maxKeyLength = 255;
const longestKey = "k".repeat(maxKeyLength);
const invalidKey = refused(400, "invalid-idempotency-key");
const differentKeys = refused(400, "different-idempotency-keys");
const emptyKey = warned({ code: "empty-key", propertyPath: [] });

export const keyChecks: readonly Check[] = [
  check(
    "keys/accepted",
    "Idempotency-Key and webhook-id accept 1 to 255 visible ASCII characters and spaces.",
    trial("one character", accepted, "Idempotency-Key: k"),
    trial("255 characters", accepted, `Idempotency-Key: ${longestKey}`),
    trial("255 characters in quotes", accepted, `Idempotency-Key: "${longestKey}"`),
    trial("with spaces", accepted, "Idempotency-Key: order 7, version 2"),
    trial("the same twice", accepted, "Idempotency-Key: k-1", 'Idempotency-Key: "k-1"'),
    trial("webhook-id", accepted, "webhook-id: msg_1/~!"),
  ),
  check(
    "keys/webhook-id",
    "webhook-id is not looked at beside an Idempotency-Key.",
    trial("other", accepted, "Idempotency-Key: k-1", "webhook-id: k-2"),
    trial("empty", accepted, "Idempotency-Key: k-1", "webhook-id:"),
    trial("invalid", accepted, "Idempotency-Key: k-1", "webhook-id: \u00e9"),
  ),
  check(
    "keys/empty",
    "An empty key counts as absent, with the warning empty-key.",
    trial("Idempotency-Key", emptyKey, "Idempotency-Key:"),
    trial("in quotes", emptyKey, 'Idempotency-Key: ""'),
    trial("webhook-id", emptyKey, "webhook-id:"),
    trial("beside webhook-id", emptyKey, "Idempotency-Key:", "webhook-id: k-1"),
  ),
  check(
    "keys/refused",
    "A key that is too long, or that has other characters, gets 400.",
    ...["Idempotency-Key", "webhook-id"].flatMap((name) => [
      trial(`${name}: 256 characters`, invalidKey, `${name}: ${longestKey}k`),
      trial(`${name}: not ASCII`, invalidKey, `${name}: é`),
      trial(`${name}: a tab`, invalidKey, `${name}: a\tb`),
    ]),
  ),
  check(
    "keys/different",
    "Two different keys get 400.",
    trial("Idempotency-Key", differentKeys, "Idempotency-Key: k-1", "Idempotency-Key: k-2"),
    trial("webhook-id", differentKeys, "webhook-id: k-1", "webhook-id: k-2"),
  ),
];

function trial(label: string, expect: Expectation, ...headers: string[]) {
  return { label, request: create({ headers }), expect };
}
