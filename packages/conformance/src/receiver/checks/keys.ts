import { type Check, check } from "../check.ts";
import { accepted, refused } from "../expectations.ts";
import { create } from "../payloads.ts";

const maxKeyLength = 255;
const longestKey = "k".repeat(maxKeyLength);

export const keyChecks: readonly Check[] = [
  check(
    "ours",
    "keys/accepted",
    "Idempotency-Key and webhook-id accept 1 to 255 visible ASCII characters.",
    trial("one character", accepted, "Idempotency-Key: k"),
    trial("255 characters", accepted, `Idempotency-Key: ${longestKey}`),
    trial("webhook-id", accepted, "webhook-id: msg_1/~!"),
    trial("both, with the same value", accepted, "Idempotency-Key: k-1", "webhook-id: k-1"),
  ),
  check(
    "ours",
    "keys/refused",
    "A key that is empty, too long or repeated, or that has other characters, gets 400.",
    ...["Idempotency-Key", "webhook-id"].flatMap((name) => [
      trial(`${name}: empty`, refused(400), `${name}:`),
      trial(`${name}: 256 characters`, refused(400), `${name}: ${longestKey}k`),
      trial(`${name}: with a space`, refused(400), `${name}: a b`),
      trial(`${name}: not ASCII`, refused(400), `${name}: é`),
      trial(`${name}: repeated`, refused(400), `${name}: k-1`, `${name}: k-1`),
    ]),
  ),
  check(
    "ours",
    "keys/different",
    "Idempotency-Key and webhook-id with different values get 400.",
    trial("different", refused(400), "Idempotency-Key: k-1", "webhook-id: k-2"),
  ),
];

function trial(label: string, expect: ReturnType<typeof refused>, ...headers: string[]) {
  return { label, request: create({ headers }), expect };
}
