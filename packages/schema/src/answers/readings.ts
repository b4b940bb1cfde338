import * as v from "valibot";
import type { NormalisedBooking } from "../normalise/normalise-booking.ts";

/* Each comment is also a description in the OpenAPI document: run `npm run json-schema` after a change. */

const read = <Value extends v.GenericSchema>(value: Value) => v.exactOptional(v.nullable(value));
const day = () => read(v.pipe(v.string(), v.isoDate()));
const moment = () => read(v.pipe(v.string(), v.isoTimestamp()));

/** What we read of fields that you asked for. Null: you sent no value, or none that we can read. */
export const Readings = v.object({
  /** The number in E.164. */
  consumerPhone: read(v.string()),
  /** Whether you sent the number without its country, which we then assumed. */
  consumerPhoneIsAssumed: read(v.boolean()),
  /** The address, without a name or white space. */
  consumerEmail: read(v.string()),
  /** A language tag. */
  consumerLanguage: read(v.string()),
  /** An ISO 3166-1 alpha-2 code. */
  consumerNationality: read(v.string()),
  /** An ISO 4217 code. */
  consumerCurrency: read(v.string()),
  /** The name as sent, without white space around it. */
  consumerTripDepartureCountryName: read(v.string()),
  /** An ISO 3166-1 alpha-2 code. */
  consumerTripDepartureCountryCode: read(v.string()),
  /** Three capitals. */
  consumerTripDepartureAirportCode: read(v.string()),
  /** The name as sent, without white space around it. */
  consumerTripDestinationCountryName: read(v.string()),
  /** An ISO 3166-1 alpha-2 code. */
  consumerTripDestinationCountryCode: read(v.string()),
  /** Three capitals. */
  consumerTripDestinationAirportCode: read(v.string()),
  /** Whether you sent yes or no. */
  consumerTripIsInternational: read(v.boolean()),
  /** Whether you sent yes or no. */
  consumerTripIsRegional: read(v.boolean()),
  /** Whether you sent yes or no. */
  consumerTripIsLocal: read(v.boolean()),
  /** The day as you wrote it. */
  consumerTripArrivalDate: day(),
  /** The moment in UTC. Null, too, if you sent a day or a time without a zone. */
  consumerTripArrivalAt: moment(),
  /** The day as you wrote it. */
  consumerTripReturnDate: day(),
  /** The moment in UTC. Null, too, if you sent a day or a time without a zone. */
  consumerTripReturnAt: moment(),
  /** An IANA name. */
  agentTimezone: read(v.string()),
  /** The number in E.164. */
  agentPhoneNumber: read(v.string()),
  /** Whether you sent the number without its country, which we then assumed. */
  agentPhoneNumberIsAssumed: read(v.boolean()),
  /** The address, without a name or white space. */
  agentEmail: read(v.string()),
} satisfies Record<keyof NormalisedBooking, unknown>);
export type Readings = v.InferOutput<typeof Readings>;
