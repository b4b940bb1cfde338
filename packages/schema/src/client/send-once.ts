import type { InvalidDataBody } from "../answers/answer-bodies.ts";
import type { Violation } from "../payload/violation.ts";
import type { ErrorDetails } from "./booking-events-error.ts";
import { parseRetryAfter } from "./retry-delay.ts";

export interface Attempt<Body> {
  url: string;
  secret: string;
  init: { method: string; headers?: Record<string, string>; body?: string };
  /** Reads the body of a 200. Undefined: it is not what was asked for. */
  accept: (text: string) => Outcome<Body> | undefined;
  signal: AbortSignal | undefined;
  timeoutMs: number;
  fetch: typeof fetch;
}

export type Outcome<Body> = { body: Body } | Fault;

export type Fault = { message: string } & Omit<ErrorDetails, "attempts" | "idempotencyKey">;

/** Longer than what the service answers. The rest is not read. Of a batch, its events are sent again. */
const maxAnswerBytes = 4_194_304;
/** Our secrets have 43 characters. A placeholder in a test, such as "secret", is also part of ordinary words. */
const shortestSecretLength = 16;

/** Never throws. */
export async function sendOnce<Body>(attempt: Attempt<Body>): Promise<Outcome<Body>> {
  const { url, init, signal, timeoutMs, fetch } = attempt;
  const ending = endAfter(timeoutMs, signal);
  try {
    // Not "error": Cloudflare Workers do not have it, and elsewhere it looks like a network error, which is retried.
    const response = await fetch(url, { ...init, redirect: "manual", signal: ending.signal });
    return judgeAnswer(response, await readText(response), attempt);
  } catch (error) {
    return ending.explain(error);
  } finally {
    // Closes the connection if the answer was not read to its end.
    ending.end();
  }
}

/** Ends a request when the time is up or the caller's signal is aborted. Call `end` in any case. */
export function endAfter(
  timeoutMs: number,
  callers: AbortSignal | undefined,
): { signal: AbortSignal; end: () => void; explain: (error: unknown) => Fault } {
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
    explain(error: unknown): Fault {
      if (callers?.aborted) return aborted;
      return controller.signal.aborted ? timedOut : networkError(error);
    },
  };
}

export async function readText({ body }: Response): Promise<string> {
  if (body === null) return "";
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let text = "";
  for (let bytes = 0; bytes <= maxAnswerBytes; ) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.length;
    text += decoder.decode(value, { stream: true });
  }
  return text;
}

export function judgeAnswer<Body>(
  response: Response,
  text: string,
  { secret, accept }: Pick<Attempt<Body>, "secret" | "accept">,
): Outcome<Body> {
  const { status, headers } = response;
  const accepted = status === 200 ? accept(text) : undefined;
  if (accepted !== undefined) return accepted;
  const hide = hideSecret(secret);
  const about = { status, requestId: hide(headers.get("X-Request-Id") ?? undefined) };
  if (response.type === "opaqueredirect" || (status >= 300 && status < 400)) return { ...about, ...redirected };
  const retryAfterMs = parseRetryAfter(headers.get("Retry-After"), headers.get("Date"), Date.now());
  // A 200 without our body may come from a proxy, and says nothing about the request.
  const retryable = status === 200 || isRetryable(status);
  const refusal = status < 400 ? undefined : readRefusal(parseJson(text, (_, value) => hide(value)));
  return { ...about, ...(refusal ?? unexpectedAnswer(status)), retryable, retryAfterMs };
}

/** A 4xx means that the same bytes will be refused again, except for two. */
export function isRetryable(status: number): boolean {
  return status !== 200 && (status >= 500 || status < 400 || status === 408 || status === 429);
}

/** Accepts a JSON value of a type. */
export function acceptJson<Body>(isAnswer: (body: unknown) => body is Body): Attempt<Body>["accept"] {
  return (text) => {
    const body = parseJson(text);
    return isAnswer(body) ? { body } : undefined;
  };
}

export function parseJson(text: string, revive?: (key: string, value: unknown) => unknown): unknown {
  try {
    return JSON.parse(text, revive);
  } catch {
    return undefined;
  }
}

function readRefusal(body: unknown): Pick<Fault, "code" | "message" | "violationList"> | undefined {
  const { code, message, violationList = [] } = Object(body) as Partial<InvalidDataBody>;
  if (typeof code !== "string" || typeof message !== "string" || !Array.isArray(violationList)) return undefined;
  return { code, message, violationList: violationList.filter(isViolation).map(toViolation) };
}

function isViolation(value: unknown): value is Violation {
  const { message, code, propertyPath } = Object(value);
  if (typeof message !== "string" || typeof code !== "string" || !Array.isArray(propertyPath)) return false;
  return propertyPath.every((name) => typeof name === "string");
}

/** Whatever else a proxy has added may contain the secret, even as a key. */
function toViolation({ message, code, propertyPath }: Violation): Violation {
  return { message, code, propertyPath };
}

/** A proxy may repeat the URL, and thus the secret, in its answer. */
export function hideSecret(secret: string): <Value>(value: Value) => Value {
  const forms = secret.length < shortestSecretLength ? [] : [secret, encodeURIComponent(secret)];
  const hideIn = (text: string) => forms.reduce((rest, form) => rest.replaceAll(form, "[secret]"), text);
  // A string is replaced by a string, and everything else by itself.
  return <Value>(value: Value) => (typeof value === "string" ? hideIn(value) : value) as Value;
}

export const aborted: Fault = {
  code: "aborted",
  retryable: true,
  message: "The call was aborted. The event may have been accepted.",
};
const timedOut: Fault = {
  code: "timeout",
  retryable: true,
  message: "No answer arrived in time. The event may have been accepted.",
};
const redirected = {
  code: "redirected",
  retryable: false,
  message: "The server redirects to another address, which would learn the secret. Correct baseUrl.",
};
const unexpectedAnswer = (status: number) => ({
  code: "unexpected-answer",
  message: `An answer with status ${status} arrived that is not the service's. Check baseUrl and proxies.`,
});

/** Messages of errors may contain the URL, and thus the secret. Codes, such as ECONNREFUSED, do not. */
function networkError(error: unknown): Fault {
  const codes = [error, Object(error).cause].map((each) => Object(each).code);
  const code = codes.find((each) => typeof each === "string" && /^[A-Z][A-Z0-9_]{1,63}$/.test(each));
  const message = `No answer arrived${code === undefined ? "" : ` (${code})`}. The event may have been accepted.`;
  return { code: "network-error", message, retryable: true };
}
