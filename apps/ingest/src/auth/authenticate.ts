import type { KnownSecret, PartnerRegistry } from "@booking-events/partners";
import type { EventKind } from "@booking-events/schema";
import { type Answer, Refusal } from "../http/answers.ts";

/**
 * Finds the partner of a secret. Every refusal is looked up, counted and answered in the same way, so neither the
 * answer nor its timing reveals the cause. Only the log states the cause and the partner.
 *
 * @param answerRefused counts a refused secret and returns its answer
 */
export function authenticate(
  registry: PartnerRegistry,
  secret: string,
  kind: EventKind,
  nowMs: number,
  answerRefused: () => Answer,
): KnownSecret {
  const known = registry.findSecret(secret);
  if (known === undefined) throw new SecretRefused(answerRefused(), "unknown-secret");
  const { partner, expiresAtMs } = known;
  if (!partner.enabled) throw new SecretRefused(answerRefused(), "disabled-partner", partner.id);
  // Not `nowMs >= expiresAtMs`: an invalid date is NaN, which must refuse the secret instead of never expiring.
  if (!(nowMs < expiresAtMs)) throw new SecretRefused(answerRefused(), "expired-secret", partner.id);
  if (!partner.kinds.includes(kind)) throw new SecretRefused(answerRefused(), "kind-not-allowed", partner.id);
  return known;
}

export class SecretRefused extends Refusal {
  override name = "SecretRefused";
  readonly partnerId: string | undefined;

  constructor(answer: Answer, cause: string, partnerId?: string) {
    super(answer, { outcome: cause });
    this.partnerId = partnerId;
  }
}
