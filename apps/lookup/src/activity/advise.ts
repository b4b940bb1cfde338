import {
  dayBeforeAdvice,
  ExactNumber,
  findWarnings,
  maxJsonValues,
  maxNestingLevels,
  requestWarnings,
  validatePayload,
} from "@booking-events/schema";

type Payload = Record<string, unknown>;
type Advice = { code: string; message: string };

const reference = { consumerTripPartnerExternalReference: "TRIP-1" };
const otherwise = "See the code in the guide, or ask us.";

/** Says what to send instead, as the answer with the warning did. Only its field and code were kept. */
export function adviseOnWarning(field: string, code: string): string {
  if (code === "perhaps-the-day-before") return dayBeforeAdvice;
  if (code === "unstorable-text") return unstorableAdvice;
  // The field is the listed one, since the name that was sent is not kept.
  if (code === "similar-name" && field !== "")
    return `You sent a similar name that the contract does not list. If you mean ${field}, correct the name.`;
  if (code in requestWarnings) return requestWarnings[code as keyof typeof requestWarnings].message;
  return messageOf(code, findWarnings("create", { ...reference, ...sampleOfWarning(field, code) }));
}

const unstorableAdvice =
  "A text has U+0000 or half of a surrogate pair, which a database cannot store. Check how it was encoded or truncated.";

/** Something that gets the warning. */
function sampleOfWarning(field: string, code: string): Payload {
  switch (code) {
    case "similar-name":
      return { "amp;x": "x" };
    case "retired":
      return field === "consumerTripDepartureFlightNumber"
        ? { consumerTripDepartureFlightAirline: "x" }
        : { consumerTripBookingDate: "x" };
    case "no-trip-reference":
      return { consumerTripPartnerExternalReference: "", consumerPartnerExternalReference: "C-1" };
    case "untidy-reference":
      return { consumerTripPartnerExternalReference: " TRIP-1" };
    case "no-time-zone":
      return { [field]: "2026-06-14T07:27:17" };
    case "unreadable-date":
      return { [field]: "0001-01-01" };
    default:
      return { [field]: "?" };
  }
}

/** Says what to send instead, as the answer with the violation did. Only its field and code were kept. */
export function adviseOnViolation(field: string, code: string): string {
  const sample = sampleOfViolation.get(code);
  const payload = code === "missing" ? {} : field === "payload" ? sample : { ...reference, [field]: sample };
  const result = validatePayload("create", payload);
  return result.success ? otherwise : messageOf(code, result.violationList);
}

/** Values, and payloads, that violate the rule. */
const sampleOfViolation = new Map<string, unknown>([
  ["null", null],
  ["number", 1],
  ["boolean", true],
  ["array", []],
  ["object", {}],
  ["too-long", "x".repeat(10_000)],
  ["malformed", "?"],
  ["unstorable", "\0"],
  ["too-many-digits", new ExactNumber("1".repeat(2_000))],
  ["too-deep", nest(maxNestingLevels + 1)],
  ["too-many-values", { ...reference, unlisted: new Array(maxJsonValues + 1).fill(1) }],
  ["not-an-object", []],
  ["not-json", () => {}],
]);

function nest(levels: number): unknown {
  return levels === 0 ? 1 : [nest(levels - 1)];
}

function messageOf(code: string, found: readonly Advice[]): string {
  return found.find((one) => one.code === code)?.message ?? otherwise;
}
