import type { IncomingMessage } from "node:http";
import type { KnownSecret, PartnerRegistry } from "@booking-events/partners";
import { type Answer, answers, type EventKind } from "@booking-events/schema";
import { Refusal } from "../answers/refusal.ts";
import { findHostFault } from "../app/host-header.ts";
import { toPath } from "../app/request-path.ts";
import { type GivenSecret, secretOf } from "./secret-of.ts";

/**
 * Finds the partner of a secret. Every refusal is looked up, counted and answered in the same way, so neither the
 * answer nor its timing reveals the cause. Only the log states the cause and the partner.
 *
 * @param kind what the secret must be allowed to send; null: nothing, because the request only asks
 * @param isClockWrong whether this host's clock can't tell if a secret has expired
 * @param answerRefused counts a refused secret and returns its answer
 * @throws SecretRefused; Refusal if only the clock could tell. A partner that gets 403 does not try again
 */
export function authenticate(
  registry: PartnerRegistry,
  { secret, fault }: GivenSecret,
  kind: EventKind | null,
  { nowMs, isClockWrong }: { nowMs: number; isClockWrong: () => boolean },
  answerRefused: () => Answer,
): KnownSecret {
  const known = registry.findSecret(secret);
  if (known === undefined) throw new SecretRefused(answerRefused(), fault ?? "unknown-secret");
  const isUndecided = known.expiresAtMs !== Number.POSITIVE_INFINITY && isClockWrong();
  // It may be invalid for other reasons, whatever the time is.
  const cause = fault ?? findCause(known, kind, isUndecided ? Number.NEGATIVE_INFINITY : nowMs);
  if (cause === undefined && isUndecided) throw new Refusal(answers.partnersUnknown, { outcome: "clock-differs" });
  if (cause === undefined) return known;
  throw new SecretRefused(answerRefused(), cause, { partnerId: known.partner.id, secretId: known.secretId });
}

function findCause(known: KnownSecret, kind: EventKind | null, nowMs: number): string | undefined {
  const { partner, expiresAtMs, isRevoked } = known;
  if (isRevoked) return "revoked-secret";
  if (!partner.enabled) return "disabled-partner";
  // Not `nowMs >= expiresAtMs`: an invalid date is NaN, which must refuse the secret instead of never expiring.
  if (!(nowMs < expiresAtMs)) return "expired-secret";
  if (kind !== null && !partner.kinds.includes(kind)) return "kind-not-allowed";
  return undefined;
}

/**
 * Whether the request is sent with a valid secret to a path that takes bodies.
 *
 * @param kindOf what the secret must be allowed to send, by the segment before it; undefined if the path takes no body
 */
export function mayHaveBody(
  registry: PartnerRegistry,
  req: IncomingMessage,
  kindOf: (segment: string) => EventKind | null | undefined,
): boolean {
  if (req.method !== "POST" || findHostFault(req) !== undefined) return false;
  const [, segment = "", inPath = ""] =
    /^\/booking-event\/(\w+)(?:\/([^/?#]*)\/?)?(?:\?|$)/.exec(toPath(req) ?? "") ?? [];
  const kind = kindOf(segment);
  if (kind === undefined) return false;
  const { secret, fault } = secretOf(req, decode(inPath));
  const known = registry.findSecret(secret);
  return known !== undefined && fault === undefined && findCause(known, kind, Date.now()) === undefined;
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
