import * as v from "valibot";

/* Each comment is also a description in the OpenAPI document: run `npm run json-schema` after a change. */

const id = () => v.pipe(v.string(), v.uuid());
const moment = () => v.pipe(v.string(), v.isoTimestamp());
const count = () => v.pipe(v.number(), v.integer());

/** How many requests with events got an answer. */
export const AnswerTotal = v.object({
  /** The status of the answer. */
  status: count(),
  /** The code of the answer: `accepted`, `dry-run-passed`, or that of a refusal. */
  code: v.string(),
  /** How many requests got it. */
  count: count(),
});

/** An hour. */
export const ActivityHour = v.object({
  /** When the hour began. */
  at: moment(),
  /** What we answered to requests with events, the most frequent first. */
  answers: v.array(AnswerTotal),
  /** How many events of the hour did what, such as created, as in receipts. Events that wait are missing. */
  outcomes: v.record(v.string(), count()),
  /** True: the hour had so many events that only the first 500 count in outcomes. */
  isSample: v.boolean(),
});

/** A request that was refused. */
export const RefusedRequest = v.object({
  /** The `X-Request-Id` of the answer. */
  requestId: id(),
  /** When we answered. */
  at: moment(),
  /** The id of the secret that was used. Null: none that we know. */
  secretId: v.nullable(v.string()),
  /** The operation in the path. */
  kind: v.nullable(v.string()),
  /** The status of the answer. */
  status: count(),
  /** The code of the answer; of a refused secret, why it was refused. */
  code: v.string(),
  /** What was wrong, as `field:code`. Fields that the contract does not list are `unlisted`. */
  violations: v.array(v.string()),
});

/** How often something was wrong with a field. */
export const FieldTotal = v.object({
  /** The field. Empty: the request; payload: all of the payload; unlisted: a field that the contract does not list. */
  field: v.string(),
  /** The code of the violation or of the warning. */
  code: v.string(),
  /** What to send instead. */
  advice: v.string(),
  /** How many requests had it. */
  count: count(),
  /** The first time. */
  firstAt: moment(),
  /** The last time. */
  lastAt: moment(),
  /** The `X-Request-Id` of the last time. Null: there were only dry runs. */
  lastRequestId: v.nullable(id()),
});

/** What showed when your events were applied. */
export const Notice = v.object({
  /** `booking-unknown`, `key-reused`, `reference-kind` or `replaced`, as in receipts. */
  code: v.string(),
  /** How many events had it, of the newest 1,000 that had any. */
  count: count(),
  /** The newest such event. */
  lastEventId: id(),
});

/** An event that we could not apply. */
export const FailedEvent = v.object({
  /** The event. */
  eventId: id(),
  /** Names the reason. Quote it when you ask us. */
  code: v.string(),
  /** When we gave up. */
  failedAt: moment(),
});

/** Your events that wait to be applied. */
export const WaitingTotal = v.object({
  /** How many. */
  events: count(),
  /** The one that we received first. Null: none waits. */
  oldestEventId: v.nullable(id()),
  /** When we received it. */
  oldestAt: v.nullable(moment()),
  /** False: so many events of all partners wait that we did not look at all of them, so there may be more of yours. */
  isComplete: v.boolean(),
});

/** A secret of yours. */
export const SecretState = v.object({
  /** What we call it. */
  id: v.string(),
  /** Whether you used it for this question. */
  isInUse: v.boolean(),
  /** Whether it is valid. */
  isValid: v.boolean(),
  /** When it expires, or did. Null: never. */
  expiresAt: v.nullable(v.string()),
  /** When it was used last, within some seconds. Null: never, as far as we know. */
  lastUsedAt: v.nullable(moment()),
});

/** Your limits, and what you have used of them. */
export const LimitsInUse = v.object({
  /** Events a second. */
  perSecond: v.number(),
  /** Events at once. */
  burst: v.number(),
  /** How many events you could send at once now. */
  available: count(),
  /** Bytes of accepted payloads a day, in UTC. */
  bytesPerDay: count(),
  /** How many of them you have sent today. */
  bytesToday: count(),
  /** When the next day begins. */
  dayEndsAt: moment(),
});

/** What you have sent, and what came of it. */
export const Activity = v.object({
  /** Your id. */
  partner: v.string(),
  /** When we looked, a few seconds ago at most. */
  at: moment(),
  /** The beginning of what hours, refusals and notices are about. */
  from: moment(),
  /** The end of it. */
  until: moment(),
  /** Whether your events are on hold: they get 503 with the code partner-held. */
  isHeld: v.boolean(),
  /** Your events that wait to be applied. */
  waiting: WaitingTotal,
  /** Each hour, the oldest first. */
  hours: v.array(ActivityHour),
  /** The requests that were refused last, up to 50, the newest first. We keep 250 for a week. */
  refusals: v.array(RefusedRequest),
  /** Violated rules by field, the most frequent first. They count for whole days, in UTC. */
  violations: v.array(FieldTotal),
  /** Warnings by field, the most frequent first. They count for whole days, in UTC. */
  warnings: v.array(FieldTotal),
  /** What showed when your events were applied, the most frequent first. */
  notices: v.array(Notice),
  /** Events that we could not apply, up to 20, the newest first, whenever they were sent. */
  failed: v.array(FailedEvent),
  /** Your secrets. */
  secrets: v.array(SecretState),
  /** Your limits, and what you have used of them. */
  limits: LimitsInUse,
});
export type Activity = v.InferOutput<typeof Activity>;
