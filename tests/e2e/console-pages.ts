import { hostile } from "./fill-console.ts";

/**
 * All pages of the console, and what each has after {@link fillConsole}, for the walk through them in a browser. Whoever
 * adds a page adds it here.
 */
export const consolePages: [name: string, path: string][] = [
  ["the overview", "/"],
  ["the search", "/search"],
  ["a search", "/search?q=TRIP-1000"],
  ["a search for a hostile text", `/search?q=${encodeURIComponent(hostile.reference)}`],
  ["a booking", "/bookings/acme/TRIP-1000"],
  ["a deleted booking", "/bookings/acme/TRIP-1001"],
  ["a hostile booking", `/bookings/acme/${encodeURIComponent(hostile.reference)}`],
  ["events", "/events"],
  ["events of a partner", "/events?partner=acme"],
  ["stuck events", "/stuck"],
  ["partners", "/partners"],
  ["a partner", "/partners/acme"],
  ["a partner on hold", "/partners/globex"],
  ["subscriptions", "/subscriptions"],
  ["a subscription", "/subscriptions/arrivals-desk"],
  ["a paused subscription", "/subscriptions/warehouse"],
  ["another reader", "/subscriptions/nightly.report"],
  ["the audit", "/audit"],
  ["a page that does not exist", "/nothing"],
];
