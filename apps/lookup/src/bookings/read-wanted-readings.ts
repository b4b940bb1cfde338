import { Refusal } from "@booking-events/http";
import { lookupAnswers } from "@booking-events/schema";
import { type NormalisedBooking, readingsOf } from "@booking-events/schema/normalise";
import { readParameters } from "../read-parameters.ts";

const every = "all";

/**
 * Reads which fields a partner wants to see as we read them: `fields=consumerPhone,consumerTripArrivalDate`, or
 * `fields=all`.
 *
 * @param query as Node has it: each of its bytes is a character
 * @returns the members of their readings; none: the query does not ask
 * @throws Refusal for a name of which nothing is read, or a query that cannot be read
 */
export function readWantedReadings(query: string): (keyof NormalisedBooking)[] {
  const names = readParameters(query)("fields").flatMap((list) => list.split(","));
  const wanted = new Set<keyof NormalisedBooking>();
  for (const name of names.map((one) => one.trim())) {
    if (name === "") continue;
    const readings = name === every ? [...readingsOf.values()].flat() : readingsOf.get(name);
    if (readings === undefined) throw new Refusal(lookupAnswers.invalidFields);
    for (const reading of readings) wanted.add(reading);
  }
  return [...wanted];
}
