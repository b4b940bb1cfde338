import { type EventEnvelope, parseEnvelopeText } from "@booking-events/schema";

/** An event as it came out of the queue. */
export interface UnreadEvent {
  /** JSON of the envelope, not parsed yet. */
  text: string;
  /** The same for all events of a booking. The part before the first space is the same for all events of a partner. */
  subject: string;
}

/** No worker of this release can read the event. The message is sentences that hold no value of it. */
export class InvalidEnvelope extends Error {
  override name = "InvalidEnvelope";
}

/** Only a worker of a later release can read the event. */
export class LaterVersion extends Error {
  override name = "LaterVersion";
}

/** @throws InvalidEnvelope, LaterVersion */
export function readEnvelope(text: string): EventEnvelope {
  const parsed = parseEnvelopeText(text);
  if (parsed.success) return parsed.envelope;
  throw parsed.isOfLaterVersion ? new LaterVersion(parsed.problem) : new InvalidEnvelope(parsed.problem);
}
