import { hostile } from "./fill-console.ts";

/**
 * All pages of the console, and what each has after {@link fillConsole}, for the walk through them in a browser. Whoever
 * adds a page adds it here.
 */
export const consolePages: [name: string, path: string][] = [
  ["the overview", "/"],
  ["arrivals", "/arrivals"],
  ["the search", "/search"],
  ["a search", "/search?q=TRIP-1000"],
  ["a search for a hostile text", `/search?q=${encodeURIComponent(hostile.reference)}`],
  ["a booking", "/bookings/acme/TRIP-1000"],
  ["a deleted booking", "/bookings/acme/TRIP-1001"],
  ["a hostile booking", `/bookings/acme/${encodeURIComponent(hostile.reference)}`],
  ["a booking at a time", "/bookings/acme/TRIP-1000?at=2h"],
  ["events", "/events"],
  ["events of a partner", "/events?partner=acme"],
  ["stuck events", "/stuck"],
  ["dead events", "/stuck?status=dead"],
  ["the preview of a replay", "/stuck/replay"],
  ["the preview of a discard", "/stuck/discard"],
  ["the form of a restore", "/restore"],
  ["that of one booking", `/restore?partner=acme&reference=${encodeURIComponent(hostile.reference)}&at=2h`],
  ["tasks", "/tasks"],
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
