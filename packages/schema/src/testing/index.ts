export { bookingInput, bookingReference, invalidBookingInput } from "./arbitraries.ts";
export type { Example } from "./example.ts";
export { examples } from "./examples.ts";
