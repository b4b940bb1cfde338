import {
  type CountryCode,
  isSupportedCountry,
  type PhoneNumber,
  parsePhoneNumberFromString,
} from "libphonenumber-js/core";
import metadata from "libphonenumber-js/min/metadata";
import { isTidyNumber } from "./tidy-number.ts";

export interface ReadPhone {
  /** With `+` and the calling code, such as `+442071838750`; without an extension. */
  e164: string;
  /** Whether the number was sent without a calling code, so that its country is a guess. */
  isAssumed: boolean;
}

/**
 * Reads a phone number in any form. Of several numbers, it is the first that can be read.
 *
 * A number with a calling code needs a length that its country has; numbering plans grow, so its other digits are not
 * judged. A number without one must be valid in one of the countries.
 *
 * @param countries ISO alpha-2 codes: where a number without a calling code may be, the likeliest first
 */
export function readPhone(sent: string, countries: readonly string[]): ReadPhone | undefined {
  if (isTidyNumber(sent)) return { e164: sent, isAssumed: false };
  for (const text of splitNumbers(sent)) {
    const phone = readNumber(text, countries);
    if (phone !== undefined) return phone;
  }
  return undefined;
}

/** What a phone number is found by. All are stable texts that can be hashed and compared. */
export interface PhoneCandidates {
  /** Every number in the value, in E.164. Two values with one in common have the same number for any reader. */
  same: string[];
  /** The last eight digits of each. Values with one in common resemble each other: `07911 123456`, `+447911123456`. */
  near: string[];
}

/** Returns what a phone number is found by, however it was written. Both a stored value and the one to look for need it. */
export function phoneCandidates(sent: string, countries: readonly string[]): PhoneCandidates {
  if (isTidyNumber(sent)) return { same: [sent], near: nearOf(sent.slice(1)) };
  const same = new Set<string>();
  const near = new Set<string>();
  for (const text of splitNumbers(sent)) {
    const e164 = readNumber(text, countries)?.e164;
    if (e164 !== undefined) same.add(e164);
    const digits = (e164 ?? withoutExtension(text)).replace(/\D/g, "");
    for (const end of nearOf(digits)) near.add(end);
  }
  return { same: [...same], near: [...near] };
}

function nearOf(digits: string): string[] {
  return digits.length < nearDigits ? [] : [digits.slice(-nearDigits)];
}

/** Fewer are the same by chance in an installation with millions of bookings. Most national numbers have more. */
const nearDigits = 8;

/** The library reads no longer ones either. */
const maxLength = 250;
/** In a value. Each takes the library some microseconds. */
const maxNumbers = 4;

/**
 * What comes between two numbers. A slash is also punctuation within one, unless other last digits follow, as in
 * 183 8750/51. A semicolon begins a URI's parameters.
 */
const separators =
  /[\n\r|,&]|;(?!ext=|phone-context=|isub=)|\/(?= *(?:[+0(]|[0-9]{1,2} *$))| (?:or|and|oder|und|ou|et|y|o) /i;

/** Returns the parts of the text that may be numbers, in plain characters. */
function splitNumbers(sent: string): string[] {
  const trimmed = sent.trim();
  if (trimmed.length > maxLength) return [];
  const text = toPlainCharacters(trimmed);
  const parts = text.split(separators).filter((part) => /[0-9](?:[^0-9]*[0-9]){3}/.test(part));
  return parts.slice(0, maxNumbers);
}

/** Digits of all scripts become ASCII, dashes hyphens, and what nobody sees is removed. */
function toPlainCharacters(text: string): string {
  if (/^[\t-~]*$/.test(text)) return text.replace(/[\t_]/g, " ");
  return text
    .normalize("NFKC")
    .replace(/\p{Nd}/gu, toAsciiDigit)
    .replace(/[\p{Pd}\u2212]/gu, "-")
    .replace(/[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, "")
    .replace(/[^\S\n\r]|_/g, " ");
}

/** Returns the digits of a number as they were written, without those that E.164 leaves out. */
export function writtenDigits(sent: string): string {
  return toPlainCharacters(sent.slice(0, maxLength))
    .replace(/\(0\)|[^0-9]/g, "")
    .replace(/^00/, "");
}

/** The digits of a script follow each other. Their zero has a code point that ends in 0 or 6. */
function toAsciiDigit(digit: string): string {
  const code = digit.codePointAt(0) ?? 0;
  const row = code & ~0xf;
  const zero = /\p{Nd}/u.test(String.fromCodePoint(row)) ? row : row + 6;
  return String(code - zero);
}

function readNumber(text: string, countries: readonly string[]): ReadPhone | undefined {
  const number = text.replace(/^([^0-9]*[0-9]{7,})\.0$/, "$1"); // what pandas makes of a number
  const international = number
    .replace(/\+[ +(]*(?=\+)/g, "") // ++44
    .replace(/^([^0-9+]*)[+( ]*00(?=[ ().-]*[1-9])/, "$1+") // 0044, +0044, (0044)
    .replace(/\+(?=[ (]*0)/, ""); // +0171 has no calling code
  const phone = international.includes("+") ? readInternational(international) : undefined;
  // 0011 is not + and 11: from Australia it is +.
  return phone ?? (/\+ *[1-9]/.test(number) ? undefined : readNational(number.replace("+", ""), countries));
}

function readInternational(text: string): ReadPhone | undefined {
  const readings = alternativesOf(parsePhoneNumberFromString(text, metadata));
  const phone = readings.find((reading) => reading.isValid()) ?? readings.findLast((reading) => reading.isPossible());
  return phone === undefined ? undefined : { e164: phone.number, isAssumed: false };
}

function readNational(text: string, countries: readonly string[]): ReadPhone | undefined {
  for (const country of countries) {
    if (!isSupported(country)) continue;
    const readings = alternativesOf(parsePhoneNumberFromString(text, country, metadata));
    const phone = readings.find((reading) => reading.isValid());
    if (phone !== undefined) return { e164: phone.number, isAssumed: true };
  }
  return undefined;
}

/** A few countries, such as Antarctica, have no numbering plan. */
function isSupported(country: string): country is CountryCode {
  return isSupportedCountry(country as CountryCode, metadata);
}

/**
 * Returns the number as the library reads it, and without a prefix that the country does not have, or no longer: the
 * zero in +34 (0)612 345 678, and the 1 that Mexico's mobiles had until 2019.
 */
function alternativesOf(read: PhoneNumber | undefined): PhoneNumber[] {
  const phone = read && settle(read);
  if (phone === undefined) return [];
  const { countryCallingCode, nationalNumber } = phone;
  const prefix = countryCallingCode === "52" ? /^(?:0?1|04[45])(?=[0-9]{10}$)|^0+/ : /^0+/;
  const rest = nationalNumber.replace(prefix, "");
  if (rest === nationalNumber) return [phone];
  const parsed = parsePhoneNumberFromString(`+${countryCallingCode}${rest}`, metadata);
  const other = parsed && settle(parsed);
  return other === undefined ? [phone] : [phone, other];
}

/**
 * Returns the number that the library reads as itself. Of some prefixes, such as Brazil's 0 and 90, it takes one away
 * each time that it reads a number.
 */
function settle(phone: PhoneNumber): PhoneNumber | undefined {
  const again = parsePhoneNumberFromString(phone.number, metadata);
  if (again === undefined || again.number === phone.number) return again;
  return again.number.length < phone.number.length ? settle(again) : undefined;
}

function withoutExtension(text: string): string {
  return text.replace(/(?:[x#~]|ext|int|anexo|\u0434\u043e\u0431)[^0-9]*[0-9]+#?\s*$/i, "").replace("(0)", "");
}
