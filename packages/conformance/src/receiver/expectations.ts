import type { Answer } from "./exchange.ts";
import type { Receiver } from "./receiver.ts";

/** Returns what is wrong with an answer, in words; an empty list if nothing is. */
export type Expectation = (answer: Answer, receiver: Pick<Receiver, "dryRunOnly" | "profile">) => string[];

/** The event is accepted; with dry runs only, nothing would be wrong with it. */
export const accepted: Expectation = (answer, receiver) => {
  if (receiver.dryRunOnly) return dryRunPassed(answer, receiver);
  const { success, eventId } = bodyOf(answer);
  return judge(answer, 200, [
    [success === true, 'the body has no "success": true'],
    [receiver.profile === "spec" || isUuid(eventId), "eventId is not a UUID"],
  ]);
};

/** Nothing is stored. */
export const dryRunPassed: Expectation = (answer) => {
  const { success, dryRun } = bodyOf(answer);
  return judge(answer, 200, [
    [success === true, 'the body has no "success": true'],
    [dryRun === true, 'the body has no "dryRun": true'],
  ]);
};

/** @param code names the reason for programs. Receivers of the specification alone need none */
export function refused(
  status: number,
  code: string,
  { says, allows }: { says?: RegExp; allows?: string } = {},
): Expectation {
  return (answer, receiver) => {
    const { message } = bodyOf(answer);
    const allowed = answer.headers["allow"]?.split(/ *, */) ?? [];
    return judge(answer, status, [
      [isText(message), "the body has no message"],
      demandCode(answer, receiver, code),
      [says === undefined || says.test(String(message)), `the message does not match ${says}`],
      [allows === undefined || allowed.includes(allows), `the Allow header does not name ${allows}`],
    ]);
  };
}

export const secretRefused: Expectation = (answer, receiver) =>
  judge(answer, 403, [
    [bodyOf(answer)["message"] === "Invalid secret", 'the message is not "Invalid secret"'],
    demandCode(answer, receiver, "invalid-secret"),
  ]);

/** @param paths the expected violations, in order */
export function invalid(...paths: readonly (readonly string[])[]): Expectation {
  return (answer, receiver) => {
    const seen = JSON.stringify(violationPaths(answer));
    const expected = JSON.stringify(paths);
    return judgeInvalidData(answer, receiver, [seen === expected, `the violations are at ${seen}, not at ${expected}`]);
  };
}

/** The violation is reported, whatever else is. */
export function invalidAt(...path: readonly string[]): Expectation {
  return (answer, receiver) => {
    const isReported = violationPaths(answer).some((seen) => JSON.stringify(seen) === JSON.stringify(path));
    return judgeInvalidData(answer, receiver, [isReported, `no violation is at ${JSON.stringify(path)}`]);
  };
}

/** @param warnings in any order, as `{ code, propertyPath }` */
export function warned(...warnings: readonly { code: string; propertyPath: readonly string[] }[]): Expectation {
  return (answer, receiver) => {
    const { warnings: list } = bodyOf(answer);
    const seen = (Array.isArray(list) ? list : []).map((warning) => {
      const { message, code, propertyPath } = Object(warning);
      return JSON.stringify(isText(message) ? { code, propertyPath } : "a warning without a message");
    });
    const missing = warnings
      .map(({ code, propertyPath }) => JSON.stringify({ code, propertyPath }))
      .filter((each) => !seen.includes(each));
    return [...accepted(answer, receiver), ...missing.map((each) => `no warning is ${each}`)];
  };
}

export const unwarned: Expectation = (answer, receiver) => {
  const { warnings } = bodyOf(answer);
  return [...accepted(answer, receiver), ...(warnings === undefined ? [] : ["there are warnings"])];
};

export function bodyOf({ body }: Answer): Record<string, unknown> {
  try {
    return Object(JSON.parse(body));
  } catch {
    return {};
  }
}

/** What must be true, and what to say if it is not. */
type Demand = readonly [isMet: boolean, fault: string];

function demandCode(answer: Answer, { profile }: Pick<Receiver, "profile">, code: string): Demand {
  return [profile === "spec" || bodyOf(answer)["code"] === code, `the code is not "${code}"`];
}

/** An answer with another status is another answer, so nothing else is said about it. */
function judge(answer: Answer, status: number, demands: readonly Demand[]): string[] {
  if (answer.status !== status) return [`the status is ${answer.status}, not ${status}`];
  const common: readonly Demand[] = [
    [/^application\/json\b/i.test(answer.headers["content-type"] ?? ""), "the answer is not application/json"],
    // JSON.stringify escapes a surrogate only if it is unpaired.
    [!/\\ud[89a-f]/.test(JSON.stringify(bodyOf(answer))), "the answer contains half of a surrogate pair"],
  ];
  return [...common, ...demands].filter(([isMet]) => !isMet).map(([, fault]) => fault);
}

function judgeInvalidData(answer: Answer, receiver: Pick<Receiver, "profile">, demand: Demand): string[] {
  const { message, violationList } = bodyOf(answer);
  const isList = Array.isArray(violationList) && violationList.every(isViolation);
  return judge(answer, 422, [
    [message === "Invalid data", 'the message is not "Invalid data"'],
    [isList, "violationList is not a list of { message, propertyPath }"],
    demandCode(answer, receiver, "invalid-data"),
    demand,
  ]);
}

function violationPaths(answer: Answer): unknown[] {
  const { violationList } = bodyOf(answer);
  return Array.isArray(violationList) ? violationList.map((violation) => Object(violation).propertyPath) : [];
}

function isViolation(value: unknown): boolean {
  const { message, propertyPath } = Object(value);
  return isText(message) && Array.isArray(propertyPath) && propertyPath.every((name) => typeof name === "string");
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}

function isUuid(value: unknown): boolean {
  return typeof value === "string" && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value);
}
