import type { EventKind } from "@booking-events/schema";
import type { Random } from "./random.ts";

/** What a partner means to tell us. It may take several posts until one is acknowledged. */
export interface Intent {
  partner: string;
  kind: EventKind;
  /** A consumer's begins with "consumer "; what is sent does not. */
  reference: string;
  payload: Record<string, string>;
  idempotencyKey: string | null;
  asForm: boolean;
}

export const partners = ["acme", "globe", "zenith"] as const;

const kinds: readonly EventKind[] = ["create", "create", "update", "update", "update", "delete"];
const hotBookings = 12;
const bookings = 300;
/** Then come other bookings, so that a long run's histories stay as short as real ones. */
const intentsPerGeneration = 10_000;
const recentIntents = 200;

/** Few, so that events repeat what was sent before. */
const contents: readonly Record<string, string>[] = [
  { consumerGivenName: "Ana", consumerTripArrivalDate: "2026-06-14", consumerTripVenueName: "Harbour Hall" },
  { consumerGivenName: "Ana", consumerTripArrivalDate: "2026-06-15", consumerTripVenueName: "Harbour Hall" },
  { consumerGivenName: "Zoë & Noël", consumerTripArrivalDate: "2026-06-14T07:27:17.335Z", seats: "2" },
  { consumerGivenName: "Zoë & Noël", consumerTripReturnDate: "2026-07-01", seats: "3" },
];

const carelessKeys = ["1", "2", "booking"];

/** Random histories without end: some bookings hot, half of the events with a key, some told a second time. */
export function* inventHistories(random: Random): Generator<Intent, never> {
  const recent: Intent[] = [];
  for (let index = 0; ; index += 1) {
    const isToldAgain = recent.length > 0 && random.chance(0.06);
    const intent = isToldAgain ? random.pick(recent) : invent(random, index);
    recent.push(intent);
    if (recent.length > recentIntents) recent.shift();
    yield intent;
  }
}

function invent(random: Random, index: number): Intent {
  const kind = random.pick(kinds);
  const number = Math.floor(random.between(0, random.chance(0.5) ? hotBookings : bookings));
  const reference = `TRIP-${Math.floor(index / intentsPerGeneration)}-${number}`;
  // The same texts as those of trips, and other bookings.
  const isOfConsumer = random.chance(0.15);
  const content = kind === "delete" ? {} : random.pick(contents);
  return {
    partner: random.pick(partners),
    kind,
    reference: isOfConsumer ? `consumer ${reference}` : reference,
    payload: {
      ...(isOfConsumer
        ? { consumerPartnerExternalReference: reference }
        : { consumerTripPartnerExternalReference: reference }),
      ...content,
    },
    idempotencyKey: random.chance(0.5) ? inventKey(random, index) : null,
    asForm: random.chance(0.3),
  };
}

/** A few senders use a key for more than one event. */
function inventKey(random: Random, index: number): string {
  return random.chance(0.1) ? random.pick(carelessKeys) : `key-${index}`;
}
