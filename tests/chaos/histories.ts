import type { EventKind } from "@booking-events/schema";
import type { Outgoing } from "./post-events.ts";
import type { Random } from "./random.ts";

/** What a partner wants to tell us. */
export type Intent = Omit<Outgoing, "attempts">;

export const partners = ["acme", "globe", "zenith"] as const;

const kinds: readonly EventKind[] = ["create", "create", "update", "update", "update", "delete"];
const hotBookings = 12;
const bookings = 300;
/** After these come other bookings: histories of a long run are as short as real ones. */
const intentsPerGeneration = 10_000;
const recentIntents = 200;

/** Few: many events repeat what was sent before. */
const contents: readonly Record<string, string>[] = [
  { consumerGivenName: "Ana", consumerTripArrivalDate: "2026-06-14", consumerTripVenueName: "Harbour Hall" },
  { consumerGivenName: "Ana", consumerTripArrivalDate: "2026-06-15", consumerTripVenueName: "Harbour Hall" },
  { consumerGivenName: "Zoë & Noël", consumerTripArrivalDate: "2026-06-14T07:27:17.335Z", seats: "2" },
  { consumerGivenName: "Zoë & Noël", consumerTripReturnDate: "2026-07-01", seats: "3" },
];

const carelessKeys = ["1", "2", "booking"];

/** Random histories without end: some bookings are hot, half of the events have a key, some are sent a second time. */
export function* inventHistories(random: Random): Generator<Intent, never> {
  const recent: Intent[] = [];
  for (let index = 0; ; index += 1) {
    const isRepeated = recent.length > 0 && random.chance(0.06);
    const intent = isRepeated ? random.pick(recent) : invent(random, index);
    recent.push(intent);
    if (recent.length > recentIntents) recent.shift();
    yield intent;
  }
}

function invent(random: Random, index: number): Intent {
  const kind = random.pick(kinds);
  const number = Math.floor(random.between(0, random.chance(0.5) ? hotBookings : bookings));
  const reference = `TRIP-${Math.floor(index / intentsPerGeneration)}-${number}`;
  // The same text is the reference of a trip and that of a consumer, which are two bookings.
  const isOfConsumer = random.chance(0.15);
  const payload = {
    [isOfConsumer ? "consumerPartnerExternalReference" : "consumerTripPartnerExternalReference"]: reference,
    ...(kind === "delete" ? {} : random.pick(contents)),
  };
  return {
    partner: random.pick(partners),
    kind,
    reference: isOfConsumer ? `consumer ${reference}` : reference,
    payload,
    idempotencyKey: random.chance(0.5) ? inventKey(random, index) : null,
    ...(random.chance(0.3)
      ? { contentType: "application/x-www-form-urlencoded", body: String(new URLSearchParams(payload)) }
      : { contentType: "application/json", body: JSON.stringify(payload) }),
  };
}

/** A few senders use a key for more than one event. */
function inventKey(random: Random, index: number): string {
  return random.chance(0.1) ? random.pick(carelessKeys) : `key-${index}`;
}
