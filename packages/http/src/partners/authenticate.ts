import type { IncomingMessage } from "node:http";
import type { KnownSecret, PartnerRegistry } from "@booking-events/partners";
import type { Answer, EventKind } from "@booking-events/schema";
import { Refusal } from "../answers/refusal.ts";

/**
 * Finds the partner of a secret. Every refusal is looked up, counted and answered in the same way, so neither the
 * answer nor its timing reveals the cause. Only the log states the cause and the partner.
 *
 * @param kind what the secret must be allowed to send; null: nothing, because the request only asks
 * @param answerRefused counts a refused secret and returns its answer
 */
export function authenticate(
  registry: PartnerRegistry,
  secret: string,
  kind: EventKind | null,
  nowMs: number,
  answerRefused: () => Answer,
): KnownSecret {
  const known = registry.findSecret(secret);
  if (known === undefined) throw new SecretRefused(answerRefused(), "unknown-secret");
  const { partner, secretId, expiresAtMs } = known;
  const refuse = (cause: string) => new SecretRefused(answerRefused(), cause, { partnerId: partner.id, secretId });
  if (!partner.enabled) throw refuse("disabled-partner");
  // Not `nowMs >= expiresAtMs`: an invalid date is NaN, which must refuse the secret instead of never expiring.
  if (!(nowMs < expiresAtMs)) throw refuse("expired-secret");
  if (kind !== null && !partner.kinds.includes(kind)) throw refuse("kind-not-allowed");
  return known;
}

/** Whether the path has the secret of a partner, valid or not. */
export function hasKnownSecret(registry: PartnerRegistry, { url = "" }: IncomingMessage): boolean {
  const secret = /^(?:https?:\/\/[^/?#]*)?\/booking-event\/\w+\/([^/?#]+)/i.exec(url)?.[1] ?? "";
  return registry.findSecret(decode(secret)) !== undefined;
}

/** As the router does: what can't be decoded is taken as it is. */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

export class SecretRefused extends Refusal {
  override name = "SecretRefused";
  readonly partnerId: string | undefined;
  readonly secretId: string | undefined;

  constructor(answer: Answer, cause: string, known?: { partnerId: string; secretId: string }) {
    super(answer, { outcome: cause });
    this.partnerId = known?.partnerId;
    this.secretId = known?.secretId;
  }
}
