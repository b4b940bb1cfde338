export { readAirportCode } from "./airport-code.ts";
export { readCountry } from "./country.ts";
export { readCurrency } from "./currency.ts";
export { type ReadDate, readDate } from "./date.ts";
export { readEmail } from "./email.ts";
export { readFlag } from "./flag.ts";
export { readLanguage } from "./language.ts";
export {
  consumerCountriesOf,
  type NormalisedBooking,
  type NormaliseOptions,
  normaliseBooking,
} from "./normalise-booking.ts";
export { type PhoneCandidates, phoneCandidates, type ReadPhone, readPhone, writtenDigits } from "./phone.ts";
export { readingsOf } from "./readings.ts";
export { readTimeZone } from "./time-zone.ts";
