export { findUrlFault, type UrlFault } from "./find-url-fault.ts";
export type { PostOutcome } from "./judge-answer.ts";
export { createSigningKey, publicKeyOf, type SignatureKind } from "./signing-keys.ts";
export { type Network, Subscriber, type SubscriberOptions } from "./subscriber.ts";
export { testEvent, toEvent, type WebhookEvent } from "./to-event.ts";
