export interface ReadPhone {
  /** With `+` and the country's calling code, such as `+442071838750`. Without extensions. */
  e164: string;
  /** Whether the number was sent without a calling code, so that the country is a guess. */
  isAssumed: boolean;
}

/**
 * Reads a phone number in any form.
 *
 * @param countries ISO alpha-2 codes of the countries in which a number without a calling code may be, the likeliest first
 */
export function readPhone(sent: string, _countries: readonly string[]): ReadPhone | undefined {
  if (e164.test(sent)) return { e164: sent, isAssumed: false };
  const digits = sent.slice(0, maxLength).replace(punctuation, "").replace(/^00/, "+");
  return e164.test(digits) ? { e164: digits, isAssumed: false } : undefined;
}

const maxLength = 250;
const punctuation = /\(0\)|[\t-\r ().\-/]/g;
const e164 = /^\+[1-9][0-9]{6,14}$/;

/** By which a guest is searched. Every entry is a stable text: equal entries of two values are the same number. */
export interface PhoneCandidates {
  /** E.164: all numbers in the value. Whoever has one of them is meant. */
  same: string[];
  /** What resembling numbers have in common: their last digits. */
  near: string[];
}

/** Returns by what a phone number is found, however it was written. */
export function phoneCandidates(sent: string, countries: readonly string[]): PhoneCandidates {
  const phone = readPhone(sent, countries);
  const digits = (phone?.e164 ?? sent.slice(0, maxLength)).replace(/\D/g, "");
  return {
    same: phone === undefined ? [] : [phone.e164],
    near: digits.length < nearDigits ? [] : [digits.slice(-nearDigits)],
  };
}

const nearDigits = 8;
