// Sends booking events, asks what became of them, and compares bookings. Copy booking-events.js into your project, and
// booking-events.d.ts beside it if you use TypeScript. It needs Node 20, a browser, Deno or an edge runtime, and no package.
/** The event was not accepted, or no answer said that it was; or a question was not answered. Contains neither the secret nor the payload. */
var BookingEventsError = class extends Error {
	name = "BookingEventsError";
	/** The reason. A code never changes its meaning, but later releases may add codes. */
	code;
	/** The status of the last answer. */
	status;
	/** Names the last request. Quote it when you ask for support. */
	requestId;
	/** The violated rules, if the code is `invalid-data`; the wrong lines of a list, if it is `invalid-list-line`. */
	violationList;
	/**
	* If true, the same event may be accepted later, or may have been accepted already. Send it again with the same
	* `idempotencyKey`. If false, sending it again unchanged cannot help.
	*/
	retryable;
	/** How long the service asked to wait, in milliseconds. */
	retryAfterMs;
	/** The requests that were sent. */
	attempts;
	/** Of the event. Undefined if it was a question. */
	idempotencyKey;
	constructor(message, details) {
		super(message);
		this.code = details.code;
		this.status = details.status;
		this.requestId = details.requestId;
		this.violationList = details.violationList ?? [];
		this.retryable = details.retryable;
		this.retryAfterMs = details.retryAfterMs;
		this.attempts = details.attempts;
		this.idempotencyKey = details.idempotencyKey;
	}
};
/** 1 to 255 visible ASCII characters and spaces (0x20 to 0x7E): no control characters. */
const idempotencyKeyPattern = /^[ -~]{1,255}$/;
function isIdempotencyKey(value) {
	return idempotencyKeyPattern.test(value);
}
/**
* Returns how long to wait after a failed attempt, in milliseconds. It doubles from the first to the longest.
*
* The random part spreads the retries of many senders, which would otherwise all return at the same moment. The wait is
* never shorter than the server asked for.
*
* @param attempt the number of attempts so far
* @param random between 0 and 1
*/
function retryDelayMs(attempt, retryAfterMs, { firstMs, longestMs }, random) {
	const delayMs = Math.min(firstMs * 2 ** (attempt - 1), longestMs);
	if (retryAfterMs === void 0) return delayMs * (.5 + random / 2);
	return retryAfterMs + delayMs * random;
}
/**
* Parses the Retry-After header, which is a number of seconds or a date (RFC 9110, section 10.2.3).
*
* @param date the answer's Date header. The local clock may be wrong
* @returns milliseconds; undefined if there is no valid header
*/
function parseRetryAfter(header, date, nowMs) {
	if (header === null) return void 0;
	if (/^\d+$/.test(header)) return Number(header) * 1e3;
	const untilMs = parseHttpDate(header);
	if (untilMs === void 0) return void 0;
	return Math.max(0, untilMs - (parseHttpDate(date ?? "") ?? nowMs));
}
/** In the one format that servers may send. `Date.parse` alone also accepts others, in the local time zone. */
function parseHttpDate(text) {
	const timeMs = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text) ? Date.parse(text) : NaN;
	return Number.isNaN(timeMs) ? void 0 : timeMs;
}
/** Longer than what the service answers. The rest is not read. Of a batch, its events are sent again. */
const maxAnswerBytes = 4194304;
/** Our secrets have 43 characters. A placeholder in a test, such as "secret", is also part of ordinary words. */
const shortestSecretLength = 16;
/** Never throws. */
async function sendOnce(attempt) {
	const { url, init, signal, timeoutMs, fetch } = attempt;
	const ending = endAfter(timeoutMs, signal);
	try {
		const response = await fetch(url, {
			...init,
			redirect: "manual",
			signal: ending.signal
		});
		return judgeAnswer(response, await readText(response), attempt);
	} catch (error) {
		return ending.explain(error);
	} finally {
		ending.end();
	}
}
/** Ends a request when the time is up or the caller's signal is aborted. Call `end` in any case. */
function endAfter(timeoutMs, callers) {
	const controller = new AbortController();
	const abort = () => controller.abort();
	const timer = setTimeout(abort, timeoutMs);
	callers?.addEventListener("abort", abort);
	return {
		signal: controller.signal,
		end() {
			clearTimeout(timer);
			callers?.removeEventListener("abort", abort);
			abort();
		},
		explain(error) {
			if (callers?.aborted) return aborted;
			return controller.signal.aborted ? timedOut : networkError(error);
		}
	};
}
async function readText({ body }) {
	if (body === null) return "";
	const decoder = new TextDecoder();
	const reader = body.getReader();
	let text = "";
	for (let bytes = 0; bytes <= maxAnswerBytes;) {
		const { done, value } = await reader.read();
		if (done) return text + decoder.decode();
		bytes += value.length;
		text += decoder.decode(value, { stream: true });
	}
	return text;
}
function judgeAnswer(response, text, { secret, accept }) {
	const { status, headers } = response;
	const accepted = status === 200 ? accept(text) : void 0;
	if (accepted !== void 0) return accepted;
	const hide = hideSecret(secret);
	const about = {
		status,
		requestId: hide(headers.get("X-Request-Id") ?? void 0)
	};
	if (response.type === "opaqueredirect" || status >= 300 && status < 400) return {
		...about,
		...redirected
	};
	const retryAfterMs = parseRetryAfter(headers.get("Retry-After"), headers.get("Date"), Date.now());
	const retryable = status === 200 || isRetryable(status);
	const refusal = status < 400 ? void 0 : readRefusal(parseJson(text, (_, value) => hide(value)));
	return {
		...about,
		...refusal ?? unexpectedAnswer(status),
		retryable,
		retryAfterMs
	};
}
/** A 4xx means that the same bytes will be refused again, except for two. */
function isRetryable(status) {
	return status !== 200 && (status >= 500 || status < 400 || status === 408 || status === 429);
}
/** Accepts a JSON value of a type. */
function acceptJson(isAnswer) {
	return (text) => {
		const body = parseJson(text);
		return isAnswer(body) ? { body } : void 0;
	};
}
function parseJson(text, revive) {
	try {
		return JSON.parse(text, revive);
	} catch {
		return;
	}
}
function readRefusal(body) {
	const { code, message, violationList = [] } = Object(body);
	if (typeof code !== "string" || typeof message !== "string" || !Array.isArray(violationList)) return void 0;
	return {
		code,
		message,
		violationList: violationList.filter(isViolation).map(toViolation)
	};
}
function isViolation(value) {
	const { message, code, propertyPath } = Object(value);
	if (typeof message !== "string" || typeof code !== "string" || !Array.isArray(propertyPath)) return false;
	return propertyPath.every((name) => typeof name === "string");
}
/** Whatever else a proxy has added may contain the secret, even as a key. */
function toViolation({ message, code, propertyPath }) {
	return {
		message,
		code,
		propertyPath
	};
}
/** A proxy may repeat the URL, and thus the secret, in its answer. */
function hideSecret(secret) {
	const forms = secret.length < shortestSecretLength ? [] : [secret, encodeURIComponent(secret)];
	const hideIn = (text) => forms.reduce((rest, form) => rest.replaceAll(form, "[secret]"), text);
	return (value) => typeof value === "string" ? hideIn(value) : value;
}
const aborted = {
	code: "aborted",
	retryable: true,
	message: "The call was aborted. The event may have been accepted."
};
const timedOut = {
	code: "timeout",
	retryable: true,
	message: "No answer arrived in time. The event may have been accepted."
};
const redirected = {
	code: "redirected",
	retryable: false,
	message: "The server redirects to another address, which would learn the secret. Correct baseUrl."
};
const unexpectedAnswer = (status) => ({
	code: "unexpected-answer",
	message: `An answer with status ${status} arrived that is not the service's. Check baseUrl and proxies.`
});
/** Messages of errors may contain the URL, and thus the secret. Codes, such as ECONNREFUSED, do not. */
function networkError(error) {
	const code = [error, Object(error).cause].map((each) => Object(each).code).find((each) => typeof each === "string" && /^[A-Z][A-Z0-9_]{1,63}$/.test(each));
	return {
		code: "network-error",
		message: `No answer arrived${code === void 0 ? "" : ` (${code})`}. The event may have been accepted.`,
		retryable: true
	};
}
const longestRetryDelayMs = 3e4;
/**
* Sends a request until it is answered with 200, refused for good, or out of attempts or time.
*
* @throws BookingEventsError
*/
async function callService(request, { attemptTimeoutMs, totalTimeoutMs, maxAttempts, firstRetryDelayMs }, idempotencyKey) {
	const { signal } = request;
	const deadlineMs = performance.now() + totalTimeoutMs;
	const delays = {
		firstMs: firstRetryDelayMs,
		longestMs: longestRetryDelayMs
	};
	for (let attempts = 1;; attempts += 1) {
		if (signal?.aborted) throw toError(aborted, attempts - 1, idempotencyKey);
		const timeoutMs = Math.min(attemptTimeoutMs, deadlineMs - performance.now());
		const outcome = await sendOnce({
			...request,
			timeoutMs
		});
		if ("body" in outcome) return outcome.body;
		const delayMs = retryDelayMs(attempts, outcome.retryAfterMs, delays, Math.random());
		if (attempts >= maxAttempts || performance.now() + delayMs >= deadlineMs || !outcome.retryable || outcome.code === "aborted") throw toError(outcome, attempts, idempotencyKey);
		await wait(delayMs, signal);
	}
}
function toError({ message, ...details }, attempts, idempotencyKey) {
	return new BookingEventsError(message, {
		...details,
		attempts,
		idempotencyKey
	});
}
/** Resolves earlier if the signal is aborted. */
function wait(delayMs, signal) {
	return new Promise((resolve) => {
		const end = () => {
			clearTimeout(timer);
			signal?.removeEventListener("abort", end);
			resolve();
		};
		const timer = setTimeout(end, delayMs);
		signal?.addEventListener("abort", end);
		if (signal?.aborted) end();
	});
}
/** So few that a slow rate limit lets all of them through before the time-out, and little is sent again after a failure. */
const eventsPerRequest = 100;
/** Long, because the service reads a batch as slowly as the rate limit demands. */
const timeoutMs = 3e5;
/** @throws BookingEventsError; what the list throws */
async function* sendBatch({ dryRun, limits, ...request }, events) {
	const headers = {
		"Content-Type": "application/x-ndjson",
		...dryRun ? { "X-Dry-Run": "true" } : {}
	};
	const ofBatch = {
		...limits,
		attemptTimeoutMs: timeoutMs,
		totalTimeoutMs: timeoutMs
	};
	let line = 0;
	for await (const part of partsOf(events)) for (let rest = part; rest.length > 0;) {
		const init = {
			method: "POST",
			headers,
			body: rest.map(({ json }) => `${json}\n`).join("")
		};
		const sent = rest.length;
		const accept = (text) => acceptLines(text, sent);
		const answers = await callService({
			...request,
			init,
			accept
		}, ofBatch);
		for (const [index, answer] of answers.slice(0, sent).entries()) {
			line += 1;
			yield {
				...answer,
				line,
				idempotencyKey: rest[index]?.idempotencyKey ?? ""
			};
		}
		rest = rest.slice(answers.length);
	}
}
async function* partsOf(events) {
	let part = [];
	for await (const event of events) {
		part.push({
			idempotencyKey: event.idempotencyKey,
			json: JSON.stringify(event)
		});
		if (part.length < eventsPerRequest) continue;
		yield part;
		part = [];
	}
	yield part;
}
/**
* Accepts the lines that are decided. The first one that is not ends them. After a 403, the answer goes on if only this
* event is refused, and ends if the secret is no longer valid: then its event is to be sent again.
*/
function acceptLines(text, sent) {
	const lines = text.split("\n").map((line) => parseJson(line));
	const isDecided = (line, index) => {
		if (typeof line?.status !== "number" || isRetryable(line.status)) return false;
		return line.status !== 403 || lines[index + 1] !== void 0 || index + 1 >= sent;
	};
	const end = lines.findIndex((line, index) => !isDecided(line, index));
	const [first] = lines;
	if (end !== 0) return { body: lines.slice(0, end === -1 ? void 0 : end) };
	if (first?.code === void 0) return void 0;
	const { status, code, message = "The rest cannot be stored now.", retryAfter } = first;
	return {
		status,
		code,
		message,
		retryable: true,
		retryAfterMs: typeof retryAfter === "number" ? retryAfter * 1e3 : void 0
	};
}
/**
* Returns the function that builds the URL of each kind of event or question.
*
* The messages of its errors repeat neither argument, because either may be, or contain, the secret.
*
* @param name of the option that has the address
* @throws TypeError
*/
function createEventUrl(baseUrl, secret, name = "baseUrl") {
	const base = parseBaseUrl(baseUrl, name);
	if (typeof secret !== "string" || secret === "" || /\s|^\.\.?$/.test(secret) || !secret.isWellFormed()) throw new TypeError("secret must be the secret that we gave you, without white space.");
	return (kind) => `${base}/booking-event/${kind}/${encodeURIComponent(secret)}`;
}
function parseBaseUrl(baseUrl, name) {
	const url = URL.canParse(String(baseUrl)) ? new URL(String(baseUrl)) : void 0;
	if (url === void 0 || !isProtected(url)) throw new TypeError(`${name} must be an https URL, such as https://bookings.example.com. http is for localhost.`);
	if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "" || /\/booking-event(\/|$)/.test(url.pathname)) throw new TypeError(`${name} must end before /booking-event, without credentials, query and fragment.`);
	return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}
/** Over plain HTTP, everyone on the way could read the secret. */
function isProtected({ protocol, hostname }) {
	const isLocal = /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
	return protocol === "https:" || protocol === "http:" && isLocal;
}
/** What is read of the list before it is passed on. */
const chunkLength = 65536;
/** The service refuses a whole list, because of the secret or the rate limit for example, when the list begins. */
const firstPauseMs = 250;
/** A reference of 8,192 characters takes at most 48 KiB. */
const maxLineLength = 65536;
const cutOff = {
	code: "network-error",
	retryable: true,
	message: "The answer ended before its summary."
};
/**
* Sends a list while it is read, and yields each difference when it arrives. It is not retried, because the list may be
* readable only once.
*
* @throws BookingEventsError; what the list throws
*/
async function* reconcileList(request, list) {
	const { url, secret, signal, timeoutMs, fetch } = request;
	if (signal?.aborted) throw toError(aborted, 0);
	const ending = endAfter(timeoutMs, signal);
	const upload = createUpload(list);
	const readFault = (error) => {
		const fault = upload.fault();
		return fault === void 0 ? toError(ending.explain(error), 1) : fault.error;
	};
	try {
		const response = await orThrow(fetch(url, {
			method: "POST",
			headers: { "Content-Type": "application/x-ndjson" },
			body: upload.stream,
			duplex: "half",
			redirect: "manual",
			signal: ending.signal
		}), readFault);
		if (response.status !== 200) throw toError(judgeAnswer(response, await orThrow(readText(response), readFault), {
			secret,
			accept: () => void 0
		}), 1);
		const lines = readLines(response);
		for (;;) {
			const { done, value } = await orThrow(lines.next(), readFault);
			if (done) throw toError(cutOff, 1);
			const line = parseLine(value, hideSecret(secret));
			if (line === void 0) throw toError(cutOff, 1);
			if ("summary" in line) return line.summary;
			yield line;
		}
	} finally {
		ending.end();
		upload.stop().catch(() => {});
	}
}
async function orThrow(work, toFault) {
	try {
		return await work;
	} catch (error) {
		throw toFault(error);
	}
}
/** Reads the list only as fast as it is sent. */
function createUpload(list) {
	const iterator = Symbol.asyncIterator in list ? list[Symbol.asyncIterator]() : list[Symbol.iterator]();
	const encoder = new TextEncoder();
	let isStopped = false;
	let pauseMs = firstPauseMs;
	let fault;
	async function readChunk() {
		let lines = "";
		while (lines.length < chunkLength) {
			const { done, value } = await iterator.next();
			if (isStopped) throw new Error("The call has ended.");
			if (done) return {
				lines,
				isLast: true
			};
			const { reference, referenceKind, digest } = value;
			lines += `${JSON.stringify({
				reference,
				referenceKind,
				digest
			})}\n`;
		}
		return {
			lines,
			isLast: false
		};
	}
	return {
		stream: new ReadableStream({ async pull(controller) {
			try {
				const { lines, isLast } = await readChunk();
				if (lines !== "") controller.enqueue(encoder.encode(lines));
				if (isLast) return controller.close();
				await new Promise((resolve) => setTimeout(resolve, pauseMs));
				pauseMs = 0;
			} catch (error) {
				fault = { error };
				controller.error(error);
			}
		} }),
		/** What the list has thrown. */
		fault: () => fault,
		/** After the answer, `fetch` would go on reading the list to its end. */
		async stop() {
			isStopped = true;
			await iterator.return?.();
		}
	};
}
async function* readLines({ body }) {
	if (body === null) return;
	const reader = body.getReader();
	const decoder = new TextDecoder("utf-8", { fatal: true });
	let rest = "";
	for (;;) {
		const { done, value } = await reader.read();
		if (done) return;
		const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
		rest = lines.pop() ?? "";
		yield* lines;
		if (rest.length > maxLineLength) return;
	}
}
/** Returns undefined for what is not the service's. */
function parseLine(line, hide) {
	try {
		const value = JSON.parse(line, (_, member) => hide(member));
		if (typeof value.reference === "string" && typeof value.result === "string") return value;
		return typeof value.summary?.references === "number" ? value : void 0;
	} catch {
		return;
	}
}
const defaultReconcileTimeoutMs = 6e5;
/** `setTimeout` fires at once if the delay is longer. */
const longestTimerMs = 2 ** 31 - 1;
/**
* Creates a client, which sends events until they are accepted, refused for good, or out of attempts or time.
*
* It retries 408, 429, 5xx, time-outs and broken connections, after `Retry-After` or with growing delays. The secret is
* in no property, message or stack.
*
* @throws TypeError if an option is invalid
*/
function createBookingEventsClient(options) {
	const { secret, validate, fetch = globalThis.fetch } = options;
	const eventUrl = createEventUrl(options.baseUrl, secret);
	const limits = readLimits(options);
	const questions = createQuestions(options, limits);
	async function send(kind, payload, { idempotencyKey = crypto.randomUUID(), dryRun = false, signal } = {}) {
		requireKey(idempotencyKey);
		requireNoDates(payload);
		const body = JSON.stringify(payload);
		if (validate !== void 0) requireValid(validate(kind, JSON.parse(body)), idempotencyKey);
		const headers = {
			"Content-Type": "application/json",
			"Idempotency-Key": idempotencyKey
		};
		if (dryRun) headers["X-Dry-Run"] = "true";
		const init = {
			method: "POST",
			headers,
			body
		};
		const accept = acceptJson(dryRun ? isDryRunBody : isAcceptedBody);
		return callService({
			url: eventUrl(kind),
			init,
			accept,
			secret,
			signal,
			fetch
		}, limits, idempotencyKey);
	}
	const sender = (kind) => send.bind(void 0, kind);
	return Object.freeze({
		create: sender("create"),
		update: sender("update"),
		delete: sender("delete"),
		batch(events, { signal, dryRun = false } = {}) {
			const parts = withKeys(events);
			return sendBatch({
				url: eventUrl("batch"),
				secret,
				signal,
				fetch,
				dryRun,
				limits
			}, parts);
		},
		...questions
	});
}
function createQuestions(options, limits) {
	const { secret, fetch = globalThis.fetch } = options;
	const lookupUrl = createEventUrl(options.lookupUrl ?? options.baseUrl, secret, "lookupUrl");
	function get(url, isAnswer, { signal }) {
		return callService({
			url,
			init: { method: "GET" },
			accept: acceptJson(isAnswer),
			secret,
			signal,
			fetch
		}, limits);
	}
	return {
		receipt(eventId, options = {}) {
			return unlessRefused("no-such-event", get(`${lookupUrl("receipt")}/${encodeURIComponent(eventId)}`, isReceipt, options));
		},
		booking(reference, { referenceKind = "trip", fields = [], ...options } = {}) {
			const query = new URLSearchParams({
				reference,
				referenceKind
			});
			if (fields.length > 0) query.set("fields", String(fields));
			return unlessRefused("no-such-booking", get(`${lookupUrl("booking")}?${query}`, isBookingStatus, options));
		},
		activity({ day, ...options } = {}) {
			const query = day === void 0 ? "" : `?${new URLSearchParams({ day })}`;
			return get(`${lookupUrl("activity")}${query}`, isActivity, options);
		},
		reconcile(bookings, { signal, timeoutMs = defaultReconcileTimeoutMs, allowEmpty = false } = {}) {
			requireLimit("timeoutMs", timeoutMs);
			return reconcileList({
				url: `${lookupUrl("reconcile")}${allowEmpty ? "?allowEmpty=true" : ""}`,
				secret,
				signal,
				timeoutMs,
				fetch
			}, bookings);
		}
	};
}
/** Returns undefined if it is refused with this code. */
async function unlessRefused(code, answer) {
	try {
		return await answer;
	} catch (error) {
		if (error instanceof BookingEventsError && error.code === code) return void 0;
		throw error;
	}
}
const isAcceptedBody = (body) => {
	const { success, eventId } = Object(body);
	return success === true && typeof eventId === "string";
};
/** A dry run that stored the event is no success. */
const isDryRunBody = (body) => Object(body).success === true && Object(body).dryRun === true;
const isReceipt = (body) => {
	const { eventId, status } = Object(body);
	return typeof eventId === "string" && typeof status === "string";
};
const isBookingStatus = (body) => typeof Object(body).state === "string";
const isActivity = (body) => Array.isArray(Object(body).hours);
/** @throws TypeError */
function requireKey(idempotencyKey) {
	if (isIdempotencyKey(idempotencyKey) && !/^ | $|^".*"$/.test(idempotencyKey)) return;
	throw new TypeError("idempotencyKey must have 1 to 255 visible ASCII characters, with spaces only inside, and no quotes around.");
}
/**
* JSON would write a Date in UTC, where a local midnight is the day before.
*
* @throws TypeError
*/
function requireNoDates(payload) {
	const fields = payload;
	const name = ["consumerTripArrivalDate", "consumerTripReturnDate"].find((each) => fields[each] instanceof Date);
	if (name === void 0) return;
	throw new TypeError(`${name} is a Date, which has no zone. Send the day, such as "2027-06-14", or a time with its zone.`);
}
async function* withKeys(events) {
	for await (const { kind, payload, idempotencyKey = crypto.randomUUID() } of events) {
		requireKey(idempotencyKey);
		requireNoDates(payload);
		yield {
			kind,
			payload,
			idempotencyKey
		};
	}
}
/** @throws BookingEventsError */
function requireValid(result, idempotencyKey) {
	if (result.success) return;
	throw new BookingEventsError("The payload violates rules. It was not sent. See violationList.", {
		code: "invalid-data",
		violationList: result.violationList,
		retryable: false,
		attempts: 0,
		idempotencyKey
	});
}
function readLimits({ attemptTimeoutMs = 1e4, totalTimeoutMs = 6e4, maxAttempts = 5, firstRetryDelayMs = 1e3 }) {
	const limits = {
		attemptTimeoutMs,
		totalTimeoutMs,
		maxAttempts,
		firstRetryDelayMs
	};
	for (const [name, value] of Object.entries(limits)) requireLimit(name, value);
	return limits;
}
/** @throws TypeError */
function requireLimit(name, value) {
	if (value >= 1 && value <= longestTimerMs) return;
	throw new TypeError(`${name} must be a number from 1 to ${longestTimerMs}.`);
}
function stripZeros(digits) {
	return digits.slice(countZeros(digits, 0, 1), digits.length - countZeros(digits, digits.length - 1, -1));
}
/** A loop, because `/0+$/` takes quadratic time for a long run of zeros followed by another digit. */
function countZeros(digits, from, step) {
	let count = 0;
	while (digits[from + step * count] === "0") count += 1;
	return count;
}
/**
* A JSON number whose decimal value a double would change, such as `9007199254740993` or `1e400`. `JSON.stringify` writes
* it as it was, in Node 22, Chrome 114, Firefox 135, Safari 18.4 and later.
*/
var ExactNumber = class {
	/** As in the JSON text, with its sign, point and exponent. */
	digits;
	/** @param digits a number in JSON's notation */
	constructor(digits) {
		this.digits = digits;
	}
	/** @throws TypeError in older runtimes, which have no way to write it */
	toJSON() {
		const { rawJSON } = JSON;
		if (rawJSON === void 0) throw new TypeError("JSON.stringify cannot write an ExactNumber before Node 22. Send the digits as a string.");
		return rawJSON(this.digits);
	}
};
/**
* Writes the number as RFC 8785 demands, by the rule of `Number.prototype.toString`, but with all of its digits. So
* numbers are written alike exactly if they have the same decimal value.
*/
function toCanonicalNumber(value) {
	if (typeof value === "number") return JSON.stringify(value);
	const { sign, digits: written, pointAt } = readDecimal(value.digits);
	const digits = stripZeros(written);
	if (digits === "") return "0";
	if (pointAt > -6 && pointAt <= 0) return `${sign}0.${"0".repeat(-pointAt)}${digits}`;
	if (pointAt > 0 && pointAt <= 21) {
		const fraction = digits.slice(pointAt);
		return `${sign}${digits.slice(0, pointAt).padEnd(pointAt, "0")}${fraction && `.${fraction}`}`;
	}
	const exponent = pointAt - 1;
	return `${sign}${digits.length === 1 ? digits : `${digits[0]}.${digits.slice(1)}`}e${exponent < 0 ? "" : "+"}${exponent}`;
}
const parts = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([-+]?[0-9]+))?$/;
/** The value is ±0.DIGITS × 10^`pointAt`. The digits have no zeros at their start. */
function readDecimal(written) {
	const [, sign = "", whole = "", fraction = "", exponent = "0"] = parts.exec(written) ?? [];
	const all = whole + fraction;
	const zeros = all.search(/[1-9]/);
	if (zeros === -1) return {
		sign,
		digits: "",
		pointAt: 0
	};
	return {
		sign,
		digits: all.slice(zeros),
		pointAt: whole.length - zeros + Number(exponent)
	};
}
/**
* Writes a value as `JSON.stringify` does, but in canonical form (RFC 8785), with all digits of numbers.
*
* The names of each object are sorted by their UTF-16 code units, as `<` compares them. The result of `JSON.stringify` is
* not parsed and sorted instead, since V8 may read escaped names wrongly (https://github.com/nodejs/node/issues/63785).
*
* @param toStored what a name becomes before the names are sorted
* @returns undefined for what JSON leaves out
*/
function toCanonicalJson(sent, toStored) {
	if (typeof sent === "number" || sent instanceof ExactNumber) return toCanonicalNumber(sent);
	const value = hasToJson(sent) ? sent.toJSON() : sent;
	if (Array.isArray(value)) return `[${value.map((item) => toCanonicalJson(item, toStored) ?? "null").join(",")}]`;
	if (typeof value !== "object" || value === null) return JSON.stringify(value);
	return `{${Object.keys(value).sort(toStored === void 0 ? byCodeUnits : (one, other) => byCodeUnits(toStored(one), toStored(other))).flatMap((name) => {
		const json = toCanonicalJson(value[name], toStored);
		return json === void 0 ? [] : `${JSON.stringify(name)}:${json}`;
	}).join(",")}}`;
}
function byCodeUnits(one, other) {
	return one < other ? -1 : 1;
}
function hasToJson(value) {
	return typeof value?.toJSON === "function";
}
/**
* Returns the digest of a booking's content, as `booking` and `reconcile` use it: the SHA-256 of the payload as canonical
* JSON (RFC 8785), in hex. In its texts, U+0000 and halves of surrogate pairs are U+FFFD, as the service stores them.
*
* @param payload of the last create or update, with all fields
*/
async function digestOf(payload) {
	const json = toStorableJson(toCanonicalJson(payload, toStorable));
	const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(json));
	return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
/** In JSON, only these escapes are of characters that a database can't store. Pairs of surrogates have none. */
function toStorableJson(json = "") {
	return json.replace(/\\(u0000|ud[89a-f][0-9a-f]{2}|.)/g, (written, code) => code.length === 1 ? written : "�");
}
function toStorable(name) {
	return name.toWellFormed().replaceAll("\0", "�");
}
/** Of the client, also of the file that partners download. */
const version = "0.1.0";
export { BookingEventsError, createBookingEventsClient, digestOf, version };
