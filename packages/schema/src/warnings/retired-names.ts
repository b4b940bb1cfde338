import { isBlank } from "../payload/is-blank.ts";
import type { WarnOfValue } from "./value-warnings.ts";
import type { FieldWarning } from "./warning.ts";

/** Say what to send instead of a name from an earlier version of the interface. */
export const retiredNameWarnings: ReadonlyMap<string, WarnOfValue> = new Map([
  retire("consumerTripBookingDate", {
    message:
      "The value was kept, but the field was renamed. Send consumerTripArrivalDate instead, and consumerTripReturnDate " +
      "if the consumer travels back.",
    field: "consumerTripArrivalDate",
  }),
  retire("consumerTripDepartureFlightAirline", {
    message:
      "The value was kept, but the field was removed. Send consumerTripDepartureFlightNumber, of which the airline's " +
      "code is a part.",
    field: "consumerTripDepartureFlightNumber",
  }),
]);

function retire(name: string, about: Pick<FieldWarning, "message" | "field">): [string, WarnOfValue] {
  const warning: FieldWarning = { ...about, code: "retired", propertyPath: [name] };
  return [name, (value) => (isEmpty(value) ? undefined : warning)];
}

/** Nobody misses an empty value. */
function isEmpty(value: unknown): boolean {
  return value === null || (typeof value === "string" && isBlank(value));
}
