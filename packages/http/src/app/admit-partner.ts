import type { Socket } from "node:net";
import type { Partner, PartnerRegistry } from "@booking-events/partners";
import { answers, type EventKind } from "@booking-events/schema";
import type Koa from "koa";
import { Refusal } from "../answers/refusal.ts";
import { authenticate } from "../partners/authenticate.ts";
import type { PartnerLimiter } from "../partners/limit-partners.ts";
import type { RecordUse } from "../partners/record-last-use.ts";
import { secretOf } from "../partners/secret-of.ts";
import type { AnswerGuess } from "../partners/throttle-guessing.ts";
import { ClientGone, type RequestState } from "./partner-facing-app.ts";

export interface AdmissionOptions {
  /** Returns the partners of the version of the file that is in use. */
  partners: () => PartnerRegistry;
  answerGuess: AnswerGuess;
  /** True if this host's clock is known to be wrong, so that it can't tell whether a secret has expired. */
  isClockWrong: () => boolean;
  /** Called for each request with a valid secret, in the turn of the event loop in which it arrived. */
  markAuthentic: (socket: Socket, partner: string) => void;
  recordUse: RecordUse;
  isShuttingDown: () => boolean;
  /** True if requests are to be refused before any work is done for them. */
  isOverloaded: () => boolean;
  /** True if data that was just read may have waited so long that its sender has given up and sent newer events. */
  isLate: (socket: Socket) => boolean;
  limiter: Pick<PartnerLimiter, "take">;
}

type Context = Koa.ParameterizedContext<RequestState>;

/**
 * Finds the partner of the secret, and takes a token for the request. The secret is checked first, so that strangers learn
 * nothing else and cannot make us read a body.
 *
 * @param kind as for {@link authenticate}
 * @param onAuthentic called when the secret has turned out to be valid
 * @throws Refusal, ClientGone
 */
export async function admitPartner(
  ctx: Context & { params: Record<string, string> },
  kind: EventKind | null,
  options: AdmissionOptions,
  onAuthentic: () => void = () => {},
): Promise<{ partner: Partner; secretId: string }> {
  const admitted = findPartner(ctx, kind, options, onAuthentic);
  // Every request with a valid secret takes a token, even a dry run or a request that is refused later.
  const { retryAfterS, isOverQuota, headers } = await options.limiter.take(admitted.partner);
  ctx.state.rateLimitHeaders = headers;
  if (retryAfterS !== undefined)
    throw new Refusal(isOverQuota ? answers.quota(retryAfterS) : answers.overRateLimit(retryAfterS));
  if (ctx.req.destroyed) throw new ClientGone();
  return admitted;
}

/**
 * Finds the partner of the secret. A request that lasts calls it again, to learn what another would be told now.
 *
 * @param kind as for {@link authenticate}
 * @throws Refusal
 */
export function findPartner(
  ctx: Context & { params: Record<string, string> },
  kind: EventKind | null,
  options: Omit<AdmissionOptions, "limiter">,
  onAuthentic: () => void = () => {},
): { partner: Partner; secretId: string } {
  const given = secretOf(ctx.req, ctx.params["secret"]);
  const { isClockWrong } = options;
  const refuse = () => options.answerGuess(ctx.ip);
  const registry = options.partners();
  if (registry.partnerCount === 0) throw new Refusal(answers.partnersUnknown);
  const { partner, secretId } = authenticate(registry, given, kind, { nowMs: Date.now(), isClockWrong }, refuse);
  ctx.state.partner = partner.id;
  ctx.state.secretId = secretId;
  onAuthentic();
  options.markAuthentic(ctx.req.socket, partner.id);
  options.recordUse(partner.id, secretId);
  if (options.isShuttingDown()) throw new Refusal(answers.shuttingDown);
  if (options.isOverloaded() || options.isLate(ctx.req.socket)) throw new Refusal(answers.overloaded);
  if (kind !== null && partner.held) throw new Refusal(answers.partnerHeld);
  return { partner, secretId };
}
