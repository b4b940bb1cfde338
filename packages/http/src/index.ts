export { type AdmissionOptions, admitPartner } from "./admit-partner.ts";
export { hasKnownSecret } from "./authenticate.ts";
export { boundConnections } from "./bound-connections.ts";
export { type Connection, type Connections, createConnections } from "./connections.ts";
export { createServer, type PartnerFacingServer, serverLimits } from "./create-server.ts";
export { createEventId } from "./event-id.ts";
export { headerValues } from "./header-values.ts";
export {
  type ChargePartner,
  createPartnerLimiter,
  type LimitPartner,
  type PartnerLimiter,
  type RateLimitVerdict,
} from "./limit-partners.ts";
export { createRequestObserver, type ObservedRequest, type ObserveRequest } from "./observe-requests.ts";
export { ClientGone, createPartnerFacingApp, type RequestState } from "./partner-facing-app.ts";
export { createLastUseRecorder, type RecordUse } from "./record-last-use.ts";
export { type FieldViolation, Refusal } from "./refusal.ts";
export { requestIdOf } from "./request-id.ts";
export { expectsContinue, hasBody, type PageAnswer, type StreamedAnswer } from "./send-answer.ts";
export { servePartners } from "./serve-partners.ts";
export { type AnswerGuess, createGuessThrottle, guessLimits } from "./throttle-guessing.ts";
export { watchPartnersFile } from "./watch-partners-file.ts";
