import { createHash, randomBytes } from "node:crypto";
import type { Subscription, SubscriptionToAdd } from "@booking-events/store";
import { loadSubscribers } from "./load-subscribers.ts";

/** What is kept, and what the subscriber gets. A secret and a token are shown once. */
export interface MadeKeys {
  stored: Pick<SubscriptionToAdd, "signingKey" | "tokenSha256">;
  shown: ShownKeys;
}

export type ShownKeys = { secret: string } | { publicKey: string } | { token: string };

const tokenBytes = 32;

/** @param signature null: a token to pull with */
export async function makeKeys(signature: Subscription["signature"]): Promise<MadeKeys> {
  if (signature === null) {
    const token = randomBytes(tokenBytes).toString("base64url");
    const tokenSha256 = createHash("sha256").update(token).digest();
    return { stored: { signingKey: null, tokenSha256 }, shown: { token } };
  }
  const { createSigningKey, publicKeyOf } = await loadSubscribers();
  const signingKey = createSigningKey(signature);
  const shown = signature === "hmac" ? { secret: signingKey } : { publicKey: publicKeyOf(signingKey) };
  return { stored: { signingKey, tokenSha256: null }, shown };
}
