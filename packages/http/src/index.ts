export { authenticate, SecretRefused } from "./authenticate.ts";
export { boundConnections } from "./bound-connections.ts";
export { type Connection, type Connections, createConnections } from "./connections.ts";
export { createServer, type IngestServer, serverLimits } from "./create-server.ts";
export { createEventId } from "./event-id.ts";
export { headerValues } from "./header-values.ts";
export { findHostFault } from "./host-header.ts";
export {
  type ChargePartner,
  createPartnerLimiter,
  type LimitPartner,
  type PartnerLimiter,
  type RateLimitVerdict,
} from "./limit-partners.ts";
export { createRequestObserver, type ObservedRequest, type ObserveRequest, pageCode } from "./observe-requests.ts";
export { QuietKoa } from "./quiet-koa.ts";
export { createLastUseRecorder, type RecordUse } from "./record-last-use.ts";
export { type FieldViolation, Refusal } from "./refusal.ts";
export { requestIdOf } from "./request-id.ts";
export { hasBody, type PageAnswer, sendAnswer } from "./send-answer.ts";
export { type AnswerGuess, createGuessThrottle, guessLimits } from "./throttle-guessing.ts";
export { watchPartnersFile } from "./watch-partners-file.ts";
