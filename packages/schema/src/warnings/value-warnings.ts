import { readAirportCode } from "../normalise/airport-code.ts";
import { maxCountryLength, readCountry } from "../normalise/country.ts";
import { readCurrency } from "../normalise/currency.ts";
import { readDate } from "../normalise/date.ts";
import { readEmail } from "../normalise/email.ts";
import { readFlag } from "../normalise/flag.ts";
import { readLanguage } from "../normalise/language.ts";
import { agentCountriesOf, consumerCountriesOf, type NormaliseOptions } from "../normalise/normalise-booking.ts";
import { readPhone } from "../normalise/phone.ts";
import { isTidyNumber } from "../normalise/tidy-number.ts";
import { readTimeZone } from "../normalise/time-zone.ts";
import type { BookingFieldName } from "../payload/booking-input.ts";
import { isBlank } from "../payload/is-blank.ts";
import type { FieldWarning, WarningCode } from "./warning.ts";

/** Returns what to tell the sender about a field's value, if anything. */
export type WarnOfValue = (value: unknown, payload: Payload, options: NormaliseOptions) => FieldWarning | undefined;

type Payload = Readonly<Record<string, unknown>>;

/** What is wrong with a text that is not blank. */
type FindFault = (sent: string, payload: Payload, options: NormaliseOptions) => Fault | undefined;

interface Fault {
  code: WarningCode;
  /** Says what to send instead. */
  message: string;
}

function unreadable(code: WarningCode, advice: string): Fault {
  return { code, message: `The value was kept, but cannot be interpreted. ${advice}` };
}

const unreadablePhone = unreadable(
  "unreadable-phone",
  "Send the number in E.164 format, with + and the country code, such as +442071838750.",
);
const unreadableNationality = unreadable("unreadable-nationality", "Send an ISO 3166-1 code such as GB.");
const unreadableCurrency = unreadable("unreadable-currency", "Send an ISO 4217 code such as EUR.");
const unreadableEmail = unreadable("unreadable-email", "Send one address, such as name@example.com.");
const unreadableCountry = unreadable(
  "unreadable-country",
  `Send the name of the country, in at most ${maxCountryLength} characters, or its ISO 3166-1 code such as PT.`,
);
const noDate: Fault = {
  code: "unreadable-date",
  message: "The value was kept, but is what systems write for no date. Omit the field if there is none.",
};
const noTimeZone: Fault = {
  code: "no-time-zone",
  message:
    "The day counts as written, but the moment is unknown. Send the day alone, such as 2026-06-14, or the time with its " +
    "zone, such as 2026-06-14T07:27:17+02:00.",
};

const findFlagFault = faultUnless(readFlag, unreadable("unreadable-flag", 'Send the string "true" or "false".'));
const findAirportFault = faultUnless(
  readAirportCode,
  unreadable("unreadable-airport-code", "Send an IATA code of three letters, such as LHR."),
);

function faultUnless(read: (sent: string) => unknown, fault: Fault): FindFault {
  return (sent) => (read(sent) === undefined ? fault : undefined);
}

function findPhoneFault(sent: string, listCountries: () => string[]): Fault | undefined {
  const isReadable = isTidyNumber(sent) || readPhone(sent, listCountries()) !== undefined;
  return isReadable ? undefined : unreadablePhone;
}

/** A name need not be one that we know, as long as it looks like one and not like a code, as `n/a` does. */
function findCountryFault(sent: string): Fault | undefined {
  if (plainName.test(sent)) return undefined;
  const name = sent.trim();
  const isName = /\p{L}/u.test(name.slice(0, maxCountryLength)) && name.length <= maxCountryLength;
  const isCode = /^(?:[A-Za-z][ ./-]*){1,3}$/.test(name);
  return isName && (!isCode || readCountry(name) !== undefined) ? undefined : unreadableCountry;
}

/** Nearly every country has one, and the test for letters of any script takes longer. */
const plainName = /^[A-Za-z][A-Za-z ]{3,50}$/;

/** A date that cannot be read at all is refused. */
function findDateFault(sent: string): Fault | undefined {
  if (zonedTime.test(sent)) return undefined;
  const date = readDate(sent);
  if (date === "none") return noDate;
  return date?.hasTime && !date.hasZone ? noTimeZone : undefined;
}

/** Of a date that can be read. To read it takes longer than all other checks. */
const zonedTime = /^[12][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9:.]{5,20}(?:Z|[+-][0-9]{2}:[0-9]{2})$/;

const findFaults: Partial<Record<BookingFieldName, FindFault>> = {
  consumerPhone: (sent, payload, options) => findPhoneFault(sent, () => consumerCountriesOf(payload, options)),
  consumerTripDepartureCountryName: findCountryFault,
  consumerTripDepartureAirportCode: findAirportFault,
  consumerTripDestinationCountryName: findCountryFault,
  consumerTripDestinationAirportCode: findAirportFault,
  consumerTripIsInternational: findFlagFault,
  consumerTripIsRegional: findFlagFault,
  consumerTripIsLocal: findFlagFault,
  consumerTripArrivalDate: findDateFault,
  consumerTripReturnDate: findDateFault,
  agentTimezone: faultUnless(
    readTimeZone,
    unreadable("unreadable-time-zone", "Send an IANA name such as Europe/London."),
  ),
  agentPhoneNumber: (sent, _, options) => findPhoneFault(sent, () => agentCountriesOf(options)),
  consumerLanguage: faultUnless(
    readLanguage,
    unreadable("unreadable-language", "Send an ISO 639-1 code such as en, or a language tag such as pt-BR."),
  ),
  consumerEmail: faultUnless(readEmail, unreadableEmail),
  consumerNationality: faultUnless(readCountry, unreadableNationality),
  consumerCurrency: faultUnless(readCurrency, unreadableCurrency),
};

/** These may be of any type. Other fields are texts, or null. */
const faultsOfType: Partial<Record<BookingFieldName, Fault>> = {
  consumerEmail: unreadableEmail,
  consumerNationality: unreadableNationality,
  consumerCurrency: unreadableCurrency,
};

/** By the name of the field. The others may have any text. */
export const valueWarnings: ReadonlyMap<string, WarnOfValue> = new Map(
  (Object.entries(findFaults) as [BookingFieldName, FindFault][]).map(([field, findFault]) => [
    field,
    (value, payload, options) => {
      const fault = typeof value === "string" ? findFault(value, payload, options) : faultsOfType[field];
      return fault === undefined || isNone(value) ? undefined : { ...fault, propertyPath: [field], field };
    },
  ]),
);

function isNone(value: unknown): boolean {
  return value === null || value === undefined || (typeof value === "string" && isBlank(value));
}
