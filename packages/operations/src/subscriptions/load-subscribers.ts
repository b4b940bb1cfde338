/** Loaded when it is used: with Node's HTTP client, it would take a tenth of every command's start. */
export function loadSubscribers() {
  return import("@booking-events/subscribers");
}
