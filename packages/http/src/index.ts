export { createEventId } from "./answers/event-id.ts";
export { type FieldViolation, Refusal } from "./answers/refusal.ts";
export { requestIdOf } from "./answers/request-id.ts";
export { expectsContinue, hasBody, type PageAnswer, type StreamedAnswer } from "./answers/send-answer.ts";
export { type AdmissionOptions, admitPartner } from "./app/admit-partner.ts";
export { headerValues } from "./app/header-values.ts";
export { ClientGone, createPartnerFacingApp, type RequestState } from "./app/partner-facing-app.ts";
export { createRequestObserver, type ObservedRequest, type ObserveRequest } from "./log/observe-requests.ts";
export { hasKnownSecret } from "./partners/authenticate.ts";
export {
  type ChargePartner,
  createPartnerLimiter,
  type LimitPartner,
  type PartnerLimiter,
  type RateLimitVerdict,
} from "./partners/limit-partners.ts";
export { createLastUseRecorder, type RecordUse } from "./partners/record-last-use.ts";
export { type AnswerGuess, createGuessThrottle, guessLimits } from "./partners/throttle-guessing.ts";
export { watchPartnersFile } from "./partners/watch-partners-file.ts";
export { boundConnections } from "./server/bound-connections.ts";
export { type Connection, type Connections, createConnections } from "./server/connections.ts";
export { createServer, type PartnerFacingServer, serverLimits } from "./server/create-server.ts";
export { servePartners } from "./server/serve-partners.ts";
