import { type BookingFieldName, bookingFields } from "../payload/booking-input.ts";
import type { FieldType } from "../payload/field-types.ts";
import type { WarningCode } from "./warning.ts";

/**
 * How the read model normalises a field. The rules repeat those of the SQL function that the view `booking_details`
 * uses, and a test compares both. Only ASCII white space counts, because PostgreSQL's collations disagree about the rest.
 */
export interface ReadingRule {
  field: BookingFieldName;
  code: Extract<WarningCode, `unreadable-${string}`>;
  /** False if the read model has null instead of the value. */
  isReadable: (value: string) => boolean;
  /** What to send instead. */
  advice: string;
}

type ReadingRuleOfType = Omit<ReadingRule, "field">;

/** `booking_phone` */
const phone: ReadingRuleOfType = {
  code: "unreadable-phone",
  isReadable: (value) => e164.test(value) || e164.test(value.replace(punctuation, "").replace(/^00/, "+")),
  advice: "Send the number in E.164 format, with + and the country code, such as +442071838750.",
};
const punctuation = /\(0\)|[\t-\r ().\-/]/g;
const e164 = /^\+[1-9][0-9]{6,14}$/;

/** `booking_flag` */
const flag: ReadingRuleOfType = {
  code: "unreadable-flag",
  isReadable: (value) =>
    value === "true" || value === "false" || /^ *(?:true|t|yes|y|1|false|f|no|n|0) *$/i.test(value),
  advice: 'Send the string "true" or "false".',
};

/** `booking_language` */
const language: ReadingRuleOfType = {
  code: "unreadable-language",
  isReadable: (value) => /^[a-z]{2,3}(?:[-_][a-z]{4})?(?:[-_](?:[a-z]{2}|[0-9]{3}))?$/i.test(value),
  advice: "Send an ISO 639-1 code such as en, or a language tag such as pt-BR.",
};

/** `booking_code` */
const nationality: ReadingRuleOfType = {
  code: "unreadable-nationality",
  isReadable: (value) => /^ *[A-Za-z]{2,3} *$/.test(value),
  advice: "Send an ISO 3166-1 code such as GB.",
};
const hasThreeLetters = (value: string) => /^ *[A-Za-z]{3} *$/.test(value);
const currency: ReadingRuleOfType = {
  code: "unreadable-currency",
  isReadable: hasThreeLetters,
  advice: "Send an ISO 4217 code such as EUR.",
};
const airportCode: ReadingRuleOfType = {
  code: "unreadable-airport-code",
  isReadable: hasThreeLetters,
  advice: "Send an IATA code of three letters, such as LHR.",
};

/** `booking_country`. The length counts code points, which are never more than UTF-16 code units. */
const maxCountryLength = 100;
const country: ReadingRuleOfType = {
  code: "unreadable-country",
  isReadable: (value) =>
    /[^ ]/.test(value) && (value.length <= maxCountryLength || Array.from(value).length <= maxCountryLength),
  advice: `Send the name of the country, in at most ${maxCountryLength} characters.`,
};

const rulesByType: Partial<Record<FieldType, ReadingRuleOfType>> = { phone, flag, language };
const rulesByName: Partial<Record<BookingFieldName, ReadingRuleOfType>> = {
  consumerTripDepartureAirportCode: airportCode,
  consumerTripDestinationCountryName: country,
  consumerTripDestinationAirportCode: airportCode,
  consumerNationality: nationality,
  consumerCurrency: currency,
};

/**
 * The fields that the read model normalises, in the contract's order. Dates and e-mail addresses are missing because it
 * can read all that the contract allows.
 */
export const readingRules: ReadonlyMap<BookingFieldName, ReadingRule> = new Map(
  bookingFields.flatMap(({ name, type }) => {
    const rule = rulesByName[name] ?? rulesByType[type];
    return rule === undefined ? [] : [[name, { field: name, ...rule }]];
  }),
);
