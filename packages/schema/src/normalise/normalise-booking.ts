import { readAirportCode } from "./airport-code.ts";
import { maxCountryLength, readCountry } from "./country.ts";
import { readCurrency } from "./currency.ts";
import { type ReadDate, readDate } from "./date.ts";
import { readEmail } from "./email.ts";
import { readFlag } from "./flag.ts";
import { readLanguage } from "./language.ts";
import { type ReadPhone, readPhone } from "./phone.ts";
import { readTimeZone } from "./time-zone.ts";

export interface NormaliseOptions {
  /** ISO alpha-2: where a phone number without a calling code is, unless the consumer's nationality tells. */
  defaultCountry: string | null;
}

/** The normalised values of a booking. Null: there is none, or it cannot be read. */
export interface NormalisedBooking {
  /** E.164, such as `+442071838750`. */
  consumerPhone: string | null;
  /** Whether the calling code was assumed. Null if there is no number. */
  consumerPhoneIsAssumed: boolean | null;
  consumerEmail: string | null;
  /** A language tag, such as `en` or `zh-Hant-TW`. */
  consumerLanguage: string | null;
  /** ISO 3166-1 alpha-2. */
  consumerNationality: string | null;
  /** ISO 4217. */
  consumerCurrency: string | null;
  /** The name or code as sent, without white space around it, of at most 100 characters. */
  consumerTripDepartureCountryName: string | null;
  /** ISO 3166-1 alpha-2. */
  consumerTripDepartureCountryCode: string | null;
  /** Three capitals. */
  consumerTripDepartureAirportCode: string | null;
  /** The name or code as sent, without white space around it, of at most 100 characters. */
  consumerTripDestinationCountryName: string | null;
  /** ISO 3166-1 alpha-2. */
  consumerTripDestinationCountryCode: string | null;
  /** Three capitals. */
  consumerTripDestinationAirportCode: string | null;
  consumerTripIsInternational: boolean | null;
  consumerTripIsRegional: boolean | null;
  consumerTripIsLocal: boolean | null;
  /** The day as written, YYYY-MM-DD. */
  consumerTripArrivalDate: string | null;
  /** The moment in UTC, ISO 8601. Null if a day or a time without a zone was sent. */
  consumerTripArrivalAt: string | null;
  /** The day as written, YYYY-MM-DD. */
  consumerTripReturnDate: string | null;
  /** The moment in UTC, ISO 8601. Null if a day or a time without a zone was sent. */
  consumerTripReturnAt: string | null;
  /** An IANA name, such as `Europe/London`. */
  agentTimezone: string | null;
  /** E.164, such as `+442071838750`. */
  agentPhoneNumber: string | null;
  /** Whether the calling code was assumed. Null if there is no number. */
  agentPhoneNumberIsAssumed: boolean | null;
  agentEmail: string | null;
}

/**
 * Reads the values of a booking, so that programs can compare and sort them. Never throws, whatever the values are.
 *
 * @param payload of a create or update
 */
export function normaliseBooking(
  payload: { readonly [field: string]: unknown },
  options: NormaliseOptions,
): NormalisedBooking {
  const read = <Value>(field: string, reader: (sent: string) => Value | undefined): Value | null => {
    const sent = payload[field];
    return typeof sent === "string" ? (reader(sent) ?? null) : null;
  };
  const consumerPhone = read("consumerPhone", (sent) => readPhone(sent, consumerCountriesOf(payload, options)));
  const agentPhone = read("agentPhoneNumber", (sent) => readPhone(sent, agentCountriesOf(options)));
  const arrival = read("consumerTripArrivalDate", readDay);
  const departure = read("consumerTripReturnDate", readDay);
  return {
    consumerPhone: numberOf(consumerPhone),
    consumerPhoneIsAssumed: consumerPhone?.isAssumed ?? null,
    consumerEmail: read("consumerEmail", readEmail),
    consumerLanguage: read("consumerLanguage", readLanguage),
    consumerNationality: read("consumerNationality", readCountry),
    consumerCurrency: read("consumerCurrency", readCurrency),
    consumerTripDepartureCountryName: read("consumerTripDepartureCountryName", readCountryName),
    consumerTripDepartureCountryCode: read("consumerTripDepartureCountryName", readCountry),
    consumerTripDepartureAirportCode: read("consumerTripDepartureAirportCode", readAirportCode),
    consumerTripDestinationCountryName: read("consumerTripDestinationCountryName", readCountryName),
    consumerTripDestinationCountryCode: read("consumerTripDestinationCountryName", readCountry),
    consumerTripDestinationAirportCode: read("consumerTripDestinationAirportCode", readAirportCode),
    consumerTripIsInternational: read("consumerTripIsInternational", readFlag),
    consumerTripIsRegional: read("consumerTripIsRegional", readFlag),
    consumerTripIsLocal: read("consumerTripIsLocal", readFlag),
    consumerTripArrivalDate: arrival?.day ?? null,
    consumerTripArrivalAt: arrival?.moment ?? null,
    consumerTripReturnDate: departure?.day ?? null,
    consumerTripReturnAt: departure?.moment ?? null,
    agentTimezone: read("agentTimezone", readTimeZone),
    agentPhoneNumber: numberOf(agentPhone),
    agentPhoneNumberIsAssumed: agentPhone?.isAssumed ?? null,
    agentEmail: read("agentEmail", readEmail),
  };
}

/** Returns where the consumer's phone number may be if it was sent without a calling code, the likeliest country first. */
export function consumerCountriesOf(
  payload: { readonly [field: string]: unknown },
  { defaultCountry }: NormaliseOptions,
): string[] {
  const { consumerNationality: sent } = payload;
  const nationality = typeof sent === "string" ? readCountry(sent) : undefined;
  return [nationality, defaultCountry].filter((country) => typeof country === "string");
}

/** Returns where the agent's phone number may be. The consumer's nationality says nothing about it. */
export function agentCountriesOf({ defaultCountry }: NormaliseOptions): string[] {
  return defaultCountry === null ? [] : [defaultCountry];
}

function numberOf(phone: ReadPhone | null): string | null {
  return phone?.e164 ?? null;
}

function readDay(sent: string): ReadDate | undefined {
  const date = readDate(sent);
  return date === "none" ? undefined : date;
}

/** A name, or the code that was sent instead. No index has place for the longest text that partners may send. */
function readCountryName(sent: string): string | undefined {
  const name = sent.trim();
  return name !== "" && name.length <= maxCountryLength ? name : undefined;
}
