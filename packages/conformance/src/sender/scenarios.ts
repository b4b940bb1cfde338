import { type Answer, answers } from "@booking-events/schema";

/** What the receiver does with one attempt. */
export type Step =
  /** Reads the event and never answers. */
  | "hang"
  /** Reads the event, as if it was stored, and closes the connection. */
  | "disconnect"
  | "accept"
  | "accept-slowly"
  | Answer;

export interface Scenario {
  /** Stable: scripts may depend on it. */
  name: string;
  demand: string;
  /** One for each attempt that the sender should make. The last one repeats. */
  steps: readonly Step[];
  /** True if the delays between the attempts must grow. */
  backsOff?: true;
}

/** Longer than most senders wait before their first retry, so that one that ignores the header is noticed. */
const retryAfterS = 3;
const retryAfter = { "Retry-After": String(retryAfterS) };

/** As a proxy answers while the service behind it is away. */
const badGateway: Answer = {
  status: 502,
  code: "bad-gateway",
  body: "<h1>502 Bad Gateway</h1>",
  headers: { "Content-Type": "text/html" },
};

const invalidData = answers.invalidData([
  { message: "Must be a phone number.", code: "malformed", propertyPath: ["consumerPhone"] },
]);

/** In the order in which new events get them. */
export const scenarios: readonly Scenario[] = [
  { name: "accepted", demand: "An accepted event is sent once.", steps: ["accept"] },
  {
    name: "unavailable",
    demand: "After 503, the event is sent again, and not before Retry-After.",
    steps: [{ ...answers.queueUnavailable, headers: retryAfter }, "accept"],
  },
  {
    name: "over-rate-limit",
    demand: "After 429, the event is sent again, and not before Retry-After.",
    steps: [answers.overRateLimit(retryAfterS), "accept"],
  },
  {
    name: "request-timeout",
    demand: "After 408, the event is sent again.",
    steps: [answers.tooSlow, "accept"],
  },
  {
    name: "bad-gateway",
    demand: "After 502 with an HTML body, the event is sent again, each time after a longer delay.",
    steps: [badGateway, badGateway, badGateway, "accept"],
    backsOff: true,
  },
  {
    name: "no-answer",
    demand: "Without an answer, the sender gives up waiting and sends the event again.",
    steps: ["hang", "accept"],
  },
  {
    name: "broken-connection",
    demand: "After a broken connection, the event is sent again, since it may have been lost.",
    steps: ["disconnect", "accept"],
  },
  {
    name: "slow-answer",
    demand: "The sender waits for a slow answer, and sends the event once.",
    steps: ["accept-slowly"],
  },
  { name: "invalid-data", demand: "After 422, the event is not sent again.", steps: [invalidData] },
  { name: "bad-request", demand: "After 400, the event is not sent again.", steps: [answers.notAnObject] },
  // The last one, because a sender may rightly stop altogether.
  { name: "invalid-secret", demand: "After 403, the event is not sent again.", steps: [answers.invalidSecret] },
];
