import type { Answer } from "./parse-answer.ts";
import type { Receiver } from "./receiver.ts";

/** Returns what is wrong with an answer, in words; an empty list if nothing is. */
export type Expectation = (answer: Answer, receiver: Receiver) => string[];

/** The event is accepted; with dry runs, nothing would be wrong with it. */
export const accepted: Expectation = (answer, receiver) => {
  const body = bodyOf(answer);
  const isDryRun = receiver.dryRunOnly;
  return [
    ...faultsOf(answer, 200),
    ...(body["success"] === true ? [] : ['the body has no "success": true']),
    ...(isDryRun && body["dryRun"] !== true ? ['the body has no "dryRun": true'] : []),
    ...(!isDryRun && receiver.profile === "full" && !isUuid(body["eventId"]) ? ["eventId is not a UUID"] : []),
  ];
};

/** Nothing is stored. */
export const dryRunPassed: Expectation = (answer) => [
  ...faultsOf(answer, 200),
  ...(bodyOf(answer)["dryRun"] === true ? [] : ['the body has no "dryRun": true']),
];

export function refused(status: number, { says, allows }: { says?: RegExp; allows?: string } = {}): Expectation {
  return (answer) => {
    const { message } = bodyOf(answer);
    const allowed = answer.headers["allow"]?.split(/ *, */) ?? [];
    return [
      ...faultsOf(answer, status),
      ...(typeof message === "string" && message !== "" ? [] : ["the body has no message"]),
      ...(says === undefined || says.test(String(message)) ? [] : [`the message does not match ${says}`]),
      ...(allows === undefined || allowed.includes(allows) ? [] : [`the Allow header does not name ${allows}`]),
    ];
  };
}

/** The bytes are the same whatever is wrong with the secret. */
export const secretRefused: Expectation = (answer) => [
  ...refused(403)(answer, undefined as never),
  ...(bodyOf(answer)["message"] === "Invalid secret" ? [] : ['the message is not "Invalid secret"']),
];

/** @param paths the expected violations, in order */
export function invalid(...paths: readonly (readonly string[])[]): Expectation {
  return (answer) => {
    const faults = faultsOfInvalidData(answer);
    if (faults.length > 0) return faults;
    const seen = violationPaths(answer);
    const expected = JSON.stringify(paths);
    return JSON.stringify(seen) === expected
      ? []
      : [`the violations are at ${JSON.stringify(seen)}, not at ${expected}`];
  };
}

/** The violation is reported, whatever else is. */
export function invalidAt(...path: readonly string[]): Expectation {
  return (answer) => {
    const faults = faultsOfInvalidData(answer);
    if (faults.length > 0) return faults;
    const isReported = violationPaths(answer).some((seen) => JSON.stringify(seen) === JSON.stringify(path));
    return isReported ? [] : [`no violation is at ${JSON.stringify(path)}`];
  };
}

export function bodyOf({ body }: Answer): Record<string, unknown> {
  try {
    return Object(JSON.parse(body));
  } catch {
    return {};
  }
}

function violationPaths(answer: Answer): unknown[] {
  const { violationList } = bodyOf(answer);
  return Array.isArray(violationList) ? violationList.map((violation) => Object(violation).propertyPath) : [];
}

function faultsOfInvalidData(answer: Answer): string[] {
  const { message, violationList } = bodyOf(answer);
  const isList = Array.isArray(violationList) && violationList.length > 0 && violationList.every(isViolation);
  return [
    ...faultsOf(answer, 422),
    ...(message === "Invalid data" ? [] : ['the message is not "Invalid data"']),
    ...(isList ? [] : ["violationList is no list of { message, propertyPath }"]),
  ];
}

function isViolation(value: unknown): boolean {
  const { message, propertyPath } = Object(value);
  const isPath = Array.isArray(propertyPath) && propertyPath.every((name) => typeof name === "string");
  return isPath && typeof message === "string" && message !== "";
}

/** Checks what all answers have in common. */
function faultsOf(answer: Answer, status: number): string[] {
  const isJson = /^application\/json\b/i.test(answer.headers["content-type"] ?? "");
  return [
    ...(answer.status === status ? [] : [`the status is ${answer.status}, not ${status}`]),
    ...(isJson ? [] : ["the answer is not application/json"]),
    // JSON.stringify escapes a surrogate only if it is unpaired.
    ...(/\\ud[89a-f]/.test(JSON.stringify(bodyOf(answer))) ? ["the answer contains half of a surrogate pair"] : []),
  ];
}

function isUuid(value: unknown): boolean {
  return typeof value === "string" && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value);
}
