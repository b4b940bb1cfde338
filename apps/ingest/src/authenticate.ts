import type { EventKind } from "@booking-events/schema";
import type { Partner } from "@booking-events/service";
import { invalidSecret, Refusal } from "./answers.ts";
import type { PartnerRegistry } from "./partner-registry.ts";

/**
 * @throws Refusal with one and the same answer for every cause. Only the log tells them apart, and names the partner
 *   whose secret it was.
 */
export function authenticate(registry: PartnerRegistry, secret: string, kind: EventKind, nowMs: number): Partner {
  const known = registry.findSecret(secret);
  if (known === undefined) throw new SecretRefused("unknown-secret");
  const { partner, expiresAtMs } = known;
  if (!partner.enabled) throw new SecretRefused("disabled-partner", partner.id);
  // Not `nowMs >= expiresAtMs`: a date that can't be parsed is NaN, and must refuse rather than never expire.
  if (!(nowMs < expiresAtMs)) throw new SecretRefused("expired-secret", partner.id);
  if (!partner.kinds.includes(kind)) throw new SecretRefused("kind-not-allowed", partner.id);
  return partner;
}

export class SecretRefused extends Refusal {
  override name = "SecretRefused";
  readonly partnerId: string | undefined;

  constructor(outcome: string, partnerId?: string) {
    super(invalidSecret, { outcome });
    this.partnerId = partnerId;
  }
}
