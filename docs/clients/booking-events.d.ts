// Sends booking events, asks what became of them, and compares bookings. Copy booking-events.js into your project, and
// booking-events.d.ts beside it if you use TypeScript. It needs Node 20, a browser, Deno or an edge runtime, and no package.

/** The payload of create and update: a complete booking. Unlisted fields are kept. */
export type BookingInput = {
  /** The consumer's first name, without the family name. */
  consumerGivenName?: string | undefined;
  /** Your reference for the consumer. Identifies the booking only if there is no trip reference. */
  consumerPartnerExternalReference?: string | undefined;
  /** The consumer's phone number, preferably in E.164 format, such as +442071838750. Other formats are kept. Read as: number, such as +442071838750. */
  consumerPhone?: string | undefined;
  /** The city where the trip starts. */
  consumerTripDepartureCityName?: string | undefined;
  /** The country where the trip starts. Read as: name, and code such as GB. */
  consumerTripDepartureCountryName?: string | undefined;
  /** The IATA code of the airport where the trip starts. Read as: three capitals. */
  consumerTripDepartureAirportCode?: string | undefined;
  /** The airport where the trip starts. */
  consumerTripDepartureAirportName?: string | undefined;
  /** The number of the consumer's departure flight. */
  consumerTripDepartureFlightNumber?: string | undefined;
  /** The airport where the consumer arrives. */
  consumerTripArrivalAirportName?: string | undefined;
  /** The number of the consumer's arrival flight. */
  consumerTripArrivalFlightNumber?: string | undefined;
  /** The hotel or other accommodation. */
  consumerTripAccommodationName?: string | undefined;
  /** The accommodation's address. */
  consumerTripAccommodationAddress?: string | undefined;
  /** The venue of the trip. */
  consumerTripVenueName?: string | undefined;
  /** The venue's address. */
  consumerTripVenueAddress?: string | undefined;
  /** The destination city or region. */
  consumerTripDestinationName?: string | undefined;
  /** The destination country. Read as: name, and code such as PT. */
  consumerTripDestinationCountryName?: string | undefined;
  /** The IATA code of the destination airport. Read as: three capitals. */
  consumerTripDestinationAirportCode?: string | undefined;
  /** The product that the consumer booked with you. */
  consumerTripExternalProductName?: string | undefined;
  /** Whether the trip crosses a border: the string "true" or "false". Other strings are kept as sent. Read as: true or false. */
  consumerTripIsInternational?: string | undefined;
  /** Whether the trip stays within a region: the string "true" or "false". Other strings are kept as sent. Read as: true or false. */
  consumerTripIsRegional?: string | undefined;
  /** Whether the trip stays where the consumer lives: the string "true" or "false". Other strings are kept as sent. Read as: true or false. */
  consumerTripIsLocal?: string | undefined;
  /** When the consumer arrives: a date, or a date-time with a time zone. Without a return date, the trip is one-way. Read as: day, and moment if sent with a zone. */
  consumerTripArrivalDate?: string | undefined;
  /** When the consumer travels back: a date, or a date-time with a time zone. Read as: day, and moment if sent with a zone. */
  consumerTripReturnDate?: string | undefined;
  /** Your reference for the agent who made the booking. */
  agentPartnerExternalReference?: string | undefined;
  /** The agent's time zone, preferably an IANA name such as Europe/London. Read as: IANA name, such as Europe/London. */
  agentTimezone?: string | undefined;
  /** The agent's phone number, preferably in E.164 format. Read as: number, such as +442071838750. */
  agentPhoneNumber?: string | undefined;
  /** The agent's first name. */
  agentGivenName?: string | undefined;
  /** The agent's family name. */
  agentFamilyName?: string | undefined;
  /** The agent's e-mail address. Read as: address. */
  agentEmail?: string | undefined;
  /** The consumer's language, preferably an ISO 639-1 code such as en. Read as: tag, such as en or pt-BR. */
  consumerLanguage?: string | null | undefined;
  /** Your reference for the trip or booking. It identifies the booking in later updates and deletes. */
  consumerTripPartnerExternalReference?: string | undefined;
  /** The consumer's e-mail address. Read as: address. */
  consumerEmail?: unknown | undefined;
  /** The consumer's nationality, preferably an ISO 3166-1 alpha-2 code such as GB. Read as: code, such as GB. */
  consumerNationality?: unknown | undefined;
  /** The consumer's preferred currency, preferably an ISO 4217 code such as EUR. Read as: code, such as EUR. */
  consumerCurrency?: unknown | undefined;
  /** Renamed. Send consumerTripArrivalDate, and consumerTripReturnDate if the consumer travels back. */
  consumerTripBookingDate?: unknown | undefined;
  /** Removed. The airline's code is part of consumerTripDepartureFlightNumber. */
  consumerTripDepartureFlightAirline?: unknown | undefined;
  [name: string]: unknown;
};

/** The payload of delete: the booking's reference. Other fields are kept. */
export type BookingReference = {
  /** Your reference for the consumer, if you sent the booking with it. */
  consumerPartnerExternalReference?: unknown | undefined;
  /** Your reference for the trip or booking. */
  consumerTripPartnerExternalReference?: string | undefined;
  [name: string]: unknown;
};

/** The event is stored and will be applied. */
export type AcceptedBody = {
  /** Always true. */
  success: true;
  /** The event's id, a UUID of version 7: your receipt. The `X-Request-Id` header repeats it. */
  eventId: string;
  /** True if you are a test partner: the event is applied to test bookings. Missing otherwise. */
  test?: true | undefined;
  /** Likely mistakes in the payload, up to 20. Missing if there are none. The event counts even so. */
  warnings?: Array<Warning> | undefined;
};

/** Nothing is wrong. Nothing was stored. */
export type DryRunBody = {
  /** Always true. */
  success: true;
  /** Always true. */
  dryRun: true;
  /** Likely mistakes in the payload, up to 20. Missing if there are none. */
  warnings?: Array<Warning> | undefined;
};

/** A likely mistake in a valid payload. */
export type Warning = {
  /** What to send instead, in sentences. The wording may change. */
  message: string;
  /** Names what is doubtful, and never changes its meaning. Later releases may add codes. */
  code: "similar-name" | "retired" | "no-trip-reference" | "untidy-reference" | "wrong-content-type" | "unstorable-text" | "empty-key" | "no-time-zone" | "perhaps-the-day-before" | "unreadable-phone" | "unreadable-flag" | "unreadable-language" | "unreadable-nationality" | "unreadable-currency" | "unreadable-airport-code" | "unreadable-country" | "unreadable-date" | "unreadable-email" | "unreadable-time-zone";
  /** The name of the field, in an array, as in violations. Empty if the warning is about the request. */
  propertyPath: Array<string>;
};

/** A violated rule. */
export type Violation = {
  /** What to send instead, in sentences. The wording may change. */
  message: string;
  /** Names what is wrong, and never changes its meaning. Later releases may add codes. */
  code: "missing" | "null" | "number" | "boolean" | "array" | "object" | "too-long" | "malformed" | "unstorable" | "too-many-digits" | "too-deep" | "too-many-values" | "not-an-object" | "not-json";
  /** The path from the payload to the violation. Array indexes are strings of digits. Empty: the payload itself. */
  propertyPath: Array<string>;
};

/** What became of an event. */
export type Receipt = {
  /** The event that you asked about. */
  eventId: string;
  /** What became of the event. */
  status: "waiting";
} | {
  /** The event that you asked about. */
  eventId: string;
  /** The event that decides the booking now. */
  decidedBy: string | null;
  /** Codes of what you should know, from our answer to the event or since, such as `booking-unknown`. Absent: none. */
  warnings?: Array<string> | undefined;
  /** What became of the event. */
  status: "applied";
  /** What the event did to the booking. */
  outcome: "created" | "updated" | "recreated" | "deleted" | "unchanged";
} | {
  /** The event that you asked about. */
  eventId: string;
  /** The event that decides the booking now. */
  decidedBy: string | null;
  /** Codes of what you should know, from our answer to the event or since, such as `booking-unknown`. Absent: none. */
  warnings?: Array<string> | undefined;
  /** What became of the event. */
  status: "duplicate";
  /** The earlier event that this one repeats. Null: it is so old that it has left our log. */
  duplicateOf: string | null;
} | {
  /** The event that you asked about. */
  eventId: string;
  /** The event that decides the booking now. */
  decidedBy: string | null;
  /** Codes of what you should know, from our answer to the event or since, such as `booking-unknown`. Absent: none. */
  warnings?: Array<string> | undefined;
  /** What became of the event. */
  status: "superseded";
} | {
  /** The event that you asked about. */
  eventId: string;
  /** What became of the event. */
  status: "failed";
  /** Names the reason. Quote it when you ask us. */
  code: string;
} | {
  /** The event that you asked about. */
  eventId: string;
  /** What became of the event. */
  status: "expired";
} | {
  /** The event that you asked about. */
  eventId: string;
  /** What became of the event. */
  status: "erased";
};

/** What we read of fields that you asked for. Null: you sent no value, or none that we can read. */
export type Readings = {
  /** The number in E.164. */
  consumerPhone?: string | null | undefined;
  /** Whether you sent the number without its country, which we then assumed. */
  consumerPhoneIsAssumed?: boolean | null | undefined;
  /** The address, without a name or white space. */
  consumerEmail?: string | null | undefined;
  /** A language tag. */
  consumerLanguage?: string | null | undefined;
  /** An ISO 3166-1 alpha-2 code. */
  consumerNationality?: string | null | undefined;
  /** An ISO 4217 code. */
  consumerCurrency?: string | null | undefined;
  /** The name as sent, without white space around it. */
  consumerTripDepartureCountryName?: string | null | undefined;
  /** An ISO 3166-1 alpha-2 code. */
  consumerTripDepartureCountryCode?: string | null | undefined;
  /** Three capitals. */
  consumerTripDepartureAirportCode?: string | null | undefined;
  /** The name as sent, without white space around it. */
  consumerTripDestinationCountryName?: string | null | undefined;
  /** An ISO 3166-1 alpha-2 code. */
  consumerTripDestinationCountryCode?: string | null | undefined;
  /** Three capitals. */
  consumerTripDestinationAirportCode?: string | null | undefined;
  /** Whether you sent yes or no. */
  consumerTripIsInternational?: boolean | null | undefined;
  /** Whether you sent yes or no. */
  consumerTripIsRegional?: boolean | null | undefined;
  /** Whether you sent yes or no. */
  consumerTripIsLocal?: boolean | null | undefined;
  /** The day as you wrote it. */
  consumerTripArrivalDate?: string | null | undefined;
  /** The moment in UTC. Null, too, if you sent a day or a time without a zone. */
  consumerTripArrivalAt?: string | null | undefined;
  /** The day as you wrote it. */
  consumerTripReturnDate?: string | null | undefined;
  /** The moment in UTC. Null, too, if you sent a day or a time without a zone. */
  consumerTripReturnAt?: string | null | undefined;
  /** An IANA name. */
  agentTimezone?: string | null | undefined;
  /** The number in E.164. */
  agentPhoneNumber?: string | null | undefined;
  /** Whether you sent the number without its country, which we then assumed. */
  agentPhoneNumberIsAssumed?: boolean | null | undefined;
  /** The address, without a name or white space. */
  agentEmail?: string | null | undefined;
};

/** How a booking stands. */
export type BookingStatus = {
  /** Whether the booking is active or deleted, or was erased on request. */
  state: "active";
  /** How many events have changed the booking. */
  revision: number;
  /** The event that decides the booking now. */
  decidedBy: string;
  /** When we received the event that decides the booking now. */
  updatedAt: string;
  /** The SHA-256 of the booking's content as canonical JSON (RFC 8785), in hex. */
  digest: string;
  /** What we read of the fields that you asked for with `fields`. Absent: you asked for none. */
  readings?: Readings | undefined;
} | {
  /** Whether the booking is active or deleted, or was erased on request. */
  state: "deleted";
  /** How many events have changed the booking. */
  revision: number;
  /** The event that decides the booking now. */
  decidedBy: string;
  /** When we received the event that decides the booking now. */
  updatedAt: string;
} | {
  /** Whether the booking is active or deleted, or was erased on request. */
  state: "erased";
};

/** A booking that is active at your end. */
export type ListedReference = {
  /** The reference that identifies the booking. */
  reference: string;
  /** Which of the two references it is. Default: trip. */
  referenceKind?: "trip" | "consumer" | undefined;
  /** The SHA-256 of the booking's content as canonical JSON (RFC 8785), in hex. */
  digest?: string | undefined;
};

/** A booking that is not the same here and at your end. */
export type Difference = {
  /** The reference that identifies the booking. */
  reference: string;
  /** Which of the two references it is. Default: trip. */
  referenceKind?: "trip" | "consumer" | undefined;
  /** How our booking differs from yours. */
  result: "missing" | "different" | "deleted-here" | "unknown" | "erased";
  /** When we received the event that decides the booking now. */
  updatedAt?: string | undefined;
};

/** What you have sent, and what came of it. */
export type Activity = {
  /** Your id. */
  partner: string;
  /** When we looked, a few seconds ago at most. */
  at: string;
  /** The beginning of what hours, refusals and notices are about. */
  from: string;
  /** The end of it. */
  until: string;
  /** Whether your events are on hold: they get 503 with the code partner-held. */
  isHeld: boolean;
  /** Your events that wait to be applied. */
  waiting: WaitingTotal;
  /** Each hour, the oldest first. */
  hours: Array<ActivityHour>;
  /** The requests that were refused last, up to 50, the newest first. We keep 250 for a week. */
  refusals: Array<RefusedRequest>;
  /** Violated rules by field, the most frequent first. They count for whole days, in UTC. */
  violations: Array<FieldTotal>;
  /** Warnings by field, the most frequent first. They count for whole days, in UTC. */
  warnings: Array<FieldTotal>;
  /** What showed when your events were applied, the most frequent first. */
  notices: Array<Notice>;
  /** Events that we could not apply, up to 20, the newest first, whenever they were sent. */
  failed: Array<FailedEvent>;
  /** Your secrets. */
  secrets: Array<SecretState>;
  /** Your limits, and what you have used of them. */
  limits: LimitsInUse;
};

/** An hour. */
export type ActivityHour = {
  /** When the hour began. */
  at: string;
  /** What we answered to requests with events, the most frequent first. */
  answers: Array<AnswerTotal>;
  /** How many events of the hour did what, such as created, as in receipts. Events that wait are missing. */
  outcomes: object;
  /** True: the hour had so many events that only the first 500 count in outcomes. */
  isSample: boolean;
};

/** How many requests with events got an answer. */
export type AnswerTotal = {
  /** The status of the answer. */
  status: number;
  /** The code of the answer: `accepted`, `dry-run-passed`, or that of a refusal. */
  code: string;
  /** How many requests got it. */
  count: number;
};

/** A request that was refused. */
export type RefusedRequest = {
  /** The `X-Request-Id` of the answer. */
  requestId: string;
  /** When we answered. */
  at: string;
  /** The id of the secret that was used. Null: none that we know. */
  secretId: string | null;
  /** The operation in the path. */
  kind: string | null;
  /** The status of the answer. */
  status: number;
  /** The code of the answer; of a refused secret, why it was refused. */
  code: string;
  /** What was wrong, as `field:code`. Fields that the contract does not list are `unlisted`. */
  violations: Array<string>;
};

/** How often something was wrong with a field. */
export type FieldTotal = {
  /** The field. Empty: the request; payload: all of the payload; unlisted: a field that the contract does not list. */
  field: string;
  /** The code of the violation or of the warning. */
  code: string;
  /** What to send instead. */
  advice: string;
  /** How many requests had it. */
  count: number;
  /** The first time. */
  firstAt: string;
  /** The last time. */
  lastAt: string;
  /** The `X-Request-Id` of the last time. Null: there were only dry runs. */
  lastRequestId: string | null;
};

/** What showed when your events were applied. */
export type Notice = {
  /** `booking-unknown`, `key-reused`, `reference-kind` or `replaced`, as in receipts. */
  code: string;
  /** How many events had it, of the newest 1,000 that had any. */
  count: number;
  /** The newest such event. */
  lastEventId: string;
};

/** An event that we could not apply. */
export type FailedEvent = {
  /** The event. */
  eventId: string;
  /** Names the reason. Quote it when you ask us. */
  code: string;
  /** When we gave up. */
  failedAt: string;
};

/** Your events that wait to be applied. */
export type WaitingTotal = {
  /** How many. */
  events: number;
  /** The one that we received first. Null: none waits. */
  oldestEventId: string | null;
  /** When we received it. */
  oldestAt: string | null;
  /** False: so many events of all partners wait that we did not look at all of them, so there may be more of yours. */
  isComplete: boolean;
};

/** A secret of yours. */
export type SecretState = {
  /** What we call it. */
  id: string;
  /** Whether you used it for this question. */
  isInUse: boolean;
  /** Whether it is valid. */
  isValid: boolean;
  /** When it expires, or did. Null: never. */
  expiresAt: string | null;
  /** When it was used last, within some seconds. Null: never, as far as we know. */
  lastUsedAt: string | null;
};

/** Your limits, and what you have used of them. */
export type LimitsInUse = {
  /** Events a second. */
  perSecond: number;
  /** Events at once. */
  burst: number;
  /** How many events you could send at once now. */
  available: number;
  /** Bytes of accepted payloads a day, in UTC. */
  bytesPerDay: number;
  /** How many of them you have sent today. */
  bytesToday: number;
  /** When the next day begins. */
  dayEndsAt: string;
};

/** How many references were listed, and how many bookings have each result. */
export type ReconciliationCounts = {
  references: number;
  same: number;
  missing: number;
  different: number;
  "deleted-here": number;
  erased: number;
  unknown: number;
};

export type EventKind = "create" | "update" | "delete";

export type ReferenceKind = "trip" | "consumer";

export type BookingFieldName = "consumerGivenName" | "consumerPartnerExternalReference" | "consumerPhone" | "consumerTripDepartureCityName" | "consumerTripDepartureCountryName" | "consumerTripDepartureAirportCode" | "consumerTripDepartureAirportName" | "consumerTripDepartureFlightNumber" | "consumerTripArrivalAirportName" | "consumerTripArrivalFlightNumber" | "consumerTripAccommodationName" | "consumerTripAccommodationAddress" | "consumerTripVenueName" | "consumerTripVenueAddress" | "consumerTripDestinationName" | "consumerTripDestinationCountryName" | "consumerTripDestinationAirportCode" | "consumerTripExternalProductName" | "consumerTripIsInternational" | "consumerTripIsRegional" | "consumerTripIsLocal" | "consumerTripArrivalDate" | "consumerTripReturnDate" | "agentPartnerExternalReference" | "agentTimezone" | "agentPhoneNumber" | "agentGivenName" | "agentFamilyName" | "agentEmail" | "consumerLanguage" | "consumerTripPartnerExternalReference" | "consumerEmail" | "consumerNationality" | "consumerCurrency";

export type PayloadValidation = { success: true; payload: BookingInput | BookingReference } | { success: false; violationList: Violation[] };

/** Of the client, also of the file that partners download. */
export declare const version: string;

/** Reasons that the client finds itself. All other codes are the service's. */
type ClientCode = "network-error" | "timeout" | "aborted" | "redirected" | "unexpected-answer" | "invalid-data";
export interface ErrorDetails {
	code: ClientCode | (string & {});
	status?: number | undefined;
	requestId?: string | undefined;
	violationList?: readonly Violation[] | undefined;
	retryable: boolean;
	retryAfterMs?: number | undefined;
	attempts: number;
	idempotencyKey?: string | undefined;
}
/** The event was not accepted, or no answer said that it was; or a question was not answered. Contains neither the secret nor the payload. */
export declare class BookingEventsError extends Error {
	override name: string;
	/** The reason. A code never changes its meaning, but later releases may add codes. */
	readonly code: ErrorDetails["code"];
	/** The status of the last answer. */
	readonly status: number | undefined;
	/** Names the last request. Quote it when you ask for support. */
	readonly requestId: string | undefined;
	/** The violated rules, if the code is `invalid-data`; the wrong lines of a list, if it is `invalid-list-line`. */
	readonly violationList: readonly Violation[];
	/**
	* If true, the same event may be accepted later, or may have been accepted already. Send it again with the same
	* `idempotencyKey`. If false, sending it again unchanged cannot help.
	*/
	readonly retryable: boolean;
	/** How long the service asked to wait, in milliseconds. */
	readonly retryAfterMs: number | undefined;
	/** The requests that were sent. */
	readonly attempts: number;
	/** Of the event. Undefined if it was a question. */
	readonly idempotencyKey: string | undefined;
	constructor(message: string, details: ErrorDetails);
}

export interface BatchEvent {
	kind: EventKind;
	payload: BookingInput | BookingReference;
	/** As with a single event: set it if you may send the event again after a restart. */
	idempotencyKey?: string | undefined;
}
/** What became of one event of a batch. */
export interface BatchAnswer {
	/** The number of the event, from 1. */
	line: number;
	idempotencyKey: string;
	/** As a single event would have got it: 200 if the event is stored. */
	status: number;
	/** Your receipt, if the event is stored. */
	eventId?: string;
	warnings?: Warning[];
	/** The reason, if the event was refused. */
	code?: string;
	message?: string;
	violationList?: Violation[];
}

export interface ClientOptions {
	/** The address that we gave you, such as `https://bookings.example.com`. Plain HTTP is for localhost only. */
	baseUrl: string | URL;
	/** The address for questions, if it is another one. */
	lookupUrl?: string | URL | undefined;
	/** Whoever has it can send events in your name: never ship it in a web page or an app. */
	secret: string;
	/**
	* Checks each payload of `create`, `update` and `delete` before it is sent, by rules that you have. By default, only the
	* service checks, so that the client stays small.
	*/
	validate?: (kind: EventKind, payload: unknown) => PayloadValidation;
	/** The longest time for one attempt, including its whole answer. Default: 10,000 ms. */
	attemptTimeoutMs?: number;
	/** The longest time for a call, with all attempts and the waits between them. Default: 60,000 ms. */
	totalTimeoutMs?: number;
	/** Default: 5. With 1, nothing is retried. */
	maxAttempts?: number;
	/** The delay before the first retry, with a random part. It doubles with each retry, up to 30 s. Default: 1,000 ms. */
	firstRetryDelayMs?: number;
	/** Replaces the global `fetch`, for a proxy for example. */
	fetch?: typeof fetch;
}
export interface SendOptions {
	/**
	* Names the event among the booking's events: 1 to 255 visible ASCII characters, with spaces inside. All attempts of a call have the same
	* key. Default: a random one for each call. Set it if you may send the event again after a restart.
	*/
	idempotencyKey?: string;
	/** Ends the call. The event may have been accepted even so. */
	signal?: AbortSignal;
}
export interface DryRunOptions extends SendOptions {
	/** The service checks the secret and the payload, and stores nothing. */
	dryRun: true;
}
export interface BatchOptions {
	/** Ends the call. The events that are under way may have been accepted even so. */
	signal?: AbortSignal;
	/** The service checks the secret and the payloads, and stores nothing. */
	dryRun?: boolean;
}
export interface AskOptions {
	/** Ends the call. */
	signal?: AbortSignal;
}
export interface ActivityOptions extends AskOptions {
	/** One of the last seven days, in UTC, such as 2027-05-02. Default: the last 48 hours. */
	day?: string;
}
export interface BookingOptions extends AskOptions {
	/** Default: trip. */
	referenceKind?: ReferenceKind;
	/** The answer then has what the service reads of these fields, in `readings`. `all`: of every field that it reads. */
	fields?: readonly BookingFieldName[] | "all";
}
export interface ReconcileOptions extends AskOptions {
	/** The longest time until the last difference has been read. Default: 600,000 ms. */
	timeoutMs?: number;
	/** You have no active booking, so the list may be empty. Otherwise, the service refuses it. Default: false. */
	allowEmpty?: boolean;
}
/** @throws BookingEventsError if the event was not accepted, or if no answer said that it was */
type Send<Payload> = {
	(payload: Payload, options?: SendOptions & {
		dryRun?: false;
	}): Promise<AcceptedBody>;
	(payload: Payload, options: DryRunOptions): Promise<DryRunBody>;
};
export interface BookingEventsClient {
	/** A booking is new. Send the whole booking. */
	create: Send<BookingInput>;
	/** A booking has changed. Send the whole booking: fields that you omit are removed. */
	update: Send<BookingInput>;
	/** A booking is gone. Send its reference. */
	delete: Send<BookingReference>;
	/**
	* Sends many events, some hundred in a request, and yields an answer for each, in their order, when it is decided. What
	* fails for the moment is sent again, with the same keys.
	*
	* @throws BookingEventsError if the rest cannot be sent now; what the list throws
	*/
	batch(events: Iterable<BatchEvent> | AsyncIterable<BatchEvent>, options?: BatchOptions): AsyncGenerator<BatchAnswer>;
	/**
	* Asks what became of an event. Undefined: you have no such event, or it is so old that it has left the log.
	*
	* @throws BookingEventsError if there is no answer
	*/
	receipt(eventId: string, options?: AskOptions): Promise<Receipt | undefined>;
	/**
	* Asks how a booking stands. Undefined: the service has no such booking.
	*
	* @throws BookingEventsError if there is no answer
	*/
	booking(reference: string, options?: BookingOptions): Promise<BookingStatus | undefined>;
	/**
	* Asks what the service has received from you lately, and what it refused.
	*
	* @throws BookingEventsError if there is no answer
	*/
	activity(options?: ActivityOptions): Promise<Activity>;
	/**
	* Compares all bookings that are active at your end with those of the service, and yields each difference. The list is
	* sent while it is read, so neither side holds it. Nothing is retried.
	*
	* @throws BookingEventsError if the answer is not complete; what the list throws
	*/
	reconcile(bookings: Iterable<ListedReference> | AsyncIterable<ListedReference>, options?: ReconcileOptions): AsyncGenerator<Difference, ReconciliationCounts>;
}
/**
* Creates a client, which sends events until they are accepted, refused for good, or out of attempts or time.
*
* It retries 408, 429, 5xx, time-outs and broken connections, after `Retry-After` or with growing delays. The secret is
* in no property, message or stack.
*
* @throws TypeError if an option is invalid
*/
export declare function createBookingEventsClient(options: ClientOptions): BookingEventsClient;

/**
* Returns the digest of a booking's content, as `booking` and `reconcile` use it: the SHA-256 of the payload as canonical
* JSON (RFC 8785), in hex. In its texts, U+0000 and halves of surrogate pairs are U+FFFD, as the service stores them.
*
* @param payload of the last create or update, with all fields
*/
export declare function digestOf(payload: object): Promise<string>;
