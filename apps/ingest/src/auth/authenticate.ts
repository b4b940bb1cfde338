import type { KnownSecret, PartnerRegistry } from "@booking-events/partners";
import type { EventKind } from "@booking-events/schema";
import { type Answer, Refusal } from "../http/answers.ts";

/**
 * Every cause is looked up, counted and answered in the same way, so that neither the answer's bytes nor its time tells
 * them apart. Only the log does, and names the partner whose secret it was.
 *
 * @param answerRefused counts a refused secret, and gives its answer
 * @throws SecretRefused
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
  // Not `nowMs >= expiresAtMs`: a date that can't be parsed is NaN, and must refuse rather than never expire.
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
