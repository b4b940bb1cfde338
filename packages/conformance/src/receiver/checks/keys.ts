import { type Check, check } from "../check.ts";
import { accepted, type Expectation, refused } from "../expectations.ts";
import { create } from "../payloads.ts";

const maxKeyLength = 255;
const longestKey = "k".repeat(maxKeyLength);
const invalidKey = refused(400, "invalid-idempotency-key");

export const keyChecks: readonly Check[] = [
  check(
    "keys/accepted",
    "Idempotency-Key and webhook-id accept 1 to 255 visible ASCII characters.",
    trial("one character", accepted, "Idempotency-Key: k"),
    trial("255 characters", accepted, `Idempotency-Key: ${longestKey}`),
    trial("webhook-id", accepted, "webhook-id: msg_1/~!"),
    trial("both, with the same value", accepted, "Idempotency-Key: k-1", "webhook-id: k-1"),
  ),
  check(
    "keys/refused",
    "A key that is empty, too long or repeated, or that has other characters, gets 400.",
    ...["Idempotency-Key", "webhook-id"].flatMap((name) => [
      trial(`${name}: empty`, invalidKey, `${name}:`),
      trial(`${name}: 256 characters`, invalidKey, `${name}: ${longestKey}k`),
      trial(`${name}: with a space`, invalidKey, `${name}: a b`),
      trial(`${name}: not ASCII`, invalidKey, `${name}: é`),
      trial(`${name}: repeated`, invalidKey, `${name}: k-1`, `${name}: k-1`),
    ]),
    trial("empty beside another", invalidKey, "Idempotency-Key: k-1", "webhook-id:"),
  ),
  check(
    "keys/different",
    "Idempotency-Key and webhook-id with different values get 400.",
    trial("different", refused(400, "different-idempotency-keys"), "Idempotency-Key: k-1", "webhook-id: k-2"),
  ),
];

function trial(label: string, expect: Expectation, ...headers: string[]) {
  return { label, request: create({ headers }), expect };
}
