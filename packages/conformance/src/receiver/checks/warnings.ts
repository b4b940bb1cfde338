import { type Check, check } from "../check.ts";
import { accepted, bodyOf, type Expectation, unwarned, warned } from "../expectations.ts";
import { bookingJson, createWith } from "../payloads.ts";

const canary = "canary-8d1f6";

/** As the guide asks for it. */
const tidyBooking = {
  consumerPhone: "+442071838750",
  consumerTripIsInternational: "true",
  consumerTripArrivalDate: "2027-06-14",
  consumerTripReturnDate: "2027-06-20T18:00:00+02:00",
  consumerTripDestinationAirportCode: "LIS",
  agentTimezone: "Europe/London",
  agentEmail: "",
  consumerLanguage: "pt-BR",
  consumerNationality: null,
};

/** The examples show each warning. */
export const warningChecks: readonly Check[] = [
  check("warnings/none", "A booking that follows the guide gets no warning, even if optional values are empty.", {
    request: createWith((reference) => bookingJson(reference, tidyBooking)),
    expect: unwarned,
  }),
  check("warnings/maximum", "A 200 has up to 20 warnings.", {
    request: createWith((reference) => bookingJson(reference, similarNames(30))),
    expect: hasTwentyWarnings,
  }),
  check("warnings/no-values", "No warning repeats a value.", {
    request: createWith((reference) => bookingJson(reference, { consumerPhone: canary, consumer_given_name: canary })),
    expect: (answer, receiver) => [
      ...warned(
        { code: "unreadable-phone", propertyPath: ["consumerPhone"] },
        { code: "similar-name", propertyPath: ["consumer_given_name"] },
      )(answer, receiver),
      ...(answer.body.includes(canary) ? ["the answer repeats a value"] : []),
    ],
  }),
];

/** Other cases of one name. */
function similarNames(count: number): Record<string, string> {
  const name = "consumergivenname";
  return Object.fromEntries(
    Array.from({ length: count }, (_, at) => {
      const bits = Array.from(name, (letter, index) => (((at + 1) >> index) & 1 ? letter.toUpperCase() : letter));
      return [bits.join(""), "Robin"];
    }),
  );
}

function hasTwentyWarnings(...[answer, receiver]: Parameters<Expectation>): string[] {
  const { warnings } = bodyOf(answer);
  const count = Array.isArray(warnings) ? warnings.length : 0;
  return [...accepted(answer, receiver), ...(count === 20 ? [] : [`there are ${count} warnings, not 20`])];
}
